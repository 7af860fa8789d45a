package trace_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestStat: figures that were worked out by hand.
func TestStat(t *testing.T) {
	tr := read(t, "; MaxProcs: 10\n; UnixStartTime: 86400\n"+
		"1 0 0 100 4 -1 -1 4 200 -1 1 7 -1 -1 0 -1 -1 -1\n"+
		"2 50 100 50 10 -1 -1 10 40 -1 1 7 -1 -1 0 -1 -1 -1\n"+
		"3 60 -1 0 1 -1 -1 1 40 -1 5 9 -1 -1 0 -1 -1 -1\n"+
		"4 7200 0 1000 5 -1 -1 5 -1 -1 1 8 -1 -1 0 -1 -1 -1\n", trace.Options{})
	c := trace.NewCounter(&tr.Header, "hour")
	for _, j := range tr.Jobs {
		c.Add(j)
	}
	s := c.Stat()
	spread := func(of int, mean, median, p95, most float64) trace.Spread {
		return trace.Spread{of, mean, median, p95, most}
	}
	for name, pair := range map[string][2]any{
		"jobs":        {fmt.Sprint(s.Jobs, s.NeverRan, *s.Users, *s.Machine, s.OverLimit, s.Kinds), "4 1 2 10 1 map[rigid:3]"},
		"area":        {s.Area, 5900.},
		"span":        {s.Span, 7200.},
		"makespan":    {*s.Makespan, 8200.},
		"load":        {*s.Load, 100 * 5900. / 72000},
		"utilisation": {*s.Utilisation, 100 * 5900. / 82000},
		"wait":        {s.Wait, spread(3, 100./3, 0, 100, 100)},
		"slowdown":    {s.Slowdown, spread(3, 5./3, 1, 3, 3)},
		"accuracy":    {s.Accuracy, spread(2, 87.5, 50, 125, 125)},
		"gaps":        {s.Interarrival, spread(2, 3600, 50, 7150, 7150)},
	} {
		if !cmp.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	if len(s.Groups) != 2 || s.Groups[0].Name != "0" || s.Groups[0].Jobs != 2 || *s.Groups[0].Wait != 50 || s.Groups[1].Name != "2" {
		t.Errorf("by hour: %+v", s.Groups)
	}
}

// TestFindWindow: against every second counted.
func TestFindWindow(t *testing.T) {
	jobs := []trace.Job{}
	add := func(submit, wait, run float64, size int64) {
		j := trace.Unknown
		j.Submit, j.Wait, j.Run, j.Processors = submit, wait, run, size
		jobs = append(jobs, j)
	}
	add(0, 0, 30, 2)
	add(10, 15, 50, 8) // 25 to 75
	add(90, 0, 10, 4)
	add(200, 0, 1, 1)
	w, err := trace.FindWindow(slices.Values(jobs), 10, 24, 80, false)
	if err != nil || w != (trace.Window{30, 54, 80}) {
		t.Errorf("%+v, %v", w, err)
	}
	// Submitted from 0 to 23: 60 + 400 of 240.
	w, err = trace.FindWindow(slices.Values(jobs), 10, 24, 180, true)
	if err != nil || w.From != 0 || math.Abs(w.Share-100*460./240) > 1e-9 {
		t.Errorf("%+v, %v", w, err)
	}
	jobs[0].Wait = -1
	for _, bad := range []func() (trace.Window, error){
		func() (trace.Window, error) { return trace.FindWindow(slices.Values(jobs), 10, 24, 80, false) },
		func() (trace.Window, error) { return trace.FindWindow(slices.Values(jobs), 0, 24, 80, true) },
		func() (trace.Window, error) { return trace.FindWindow(slices.Values(jobs), 10, 900, 80, true) },
		func() (trace.Window, error) { return trace.FindWindow(slices.Values([]trace.Job{}), 10, 9, 80, true) },
	} {
		if w, err := bad(); err == nil {
			t.Errorf("found %+v", w)
		}
	}
}

// TestDiff covers earlier and later jobs, and jobs in only one outcome.
func TestDiff(t *testing.T) {
	outcome := func(waits ...float64) *trace.Starts {
		var all trace.Starts
		for i, w := range waits {
			j := trace.Unknown
			j.Number, j.Submit, j.Wait, j.Run, j.Processors = int64(i), 1000+float64(i), w, 10, 1
			all.Add(j)
		}
		return &all
	}
	d, err := trace.Diff(outcome(0, 5, 7, -1), outcome(0, 9, 1, 4, 0))
	want := trace.Difference{Both: 3, OnlyB: 2, Earlier: 1, Same: 1, Later: 1, Delay: trace.Spread{1, 4, 4, 4, 4}, Gain: trace.Spread{1, 6, 6, 6, 6}, Mean: -2. / 3,
		Makespan: [2]float64{19, 20}, Jobs: []trace.JobDifference{{1, 6, 10, 16, 20}, {2, 9, 3, 19, 13}}}
	if diff := cmp.Diff(want, d); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	twice := outcome(0, 1)
	again := trace.Unknown
	again.Number, again.Submit, again.Wait, again.Run, again.Processors = 0, 1001, 1, 10, 1
	twice.Add(again)
	if _, err := trace.Diff(twice, twice); err == nil {
		t.Error("a number that is there twice")
	}
}

// TestEvolve: the work stays the same, the machine suffices, and equal seeds give equal jobs.
func TestEvolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := rapid.IntRange(1, 5000).Draw(t, "machine")
		shape := rapid.SampledFrom(trace.Shapes).Draw(t, "shape")
		run := rapid.Int64Range(1, 1e6).Draw(t, "run")
		seed := rapid.Uint64().Draw(t, "seed")
		of := func() trace.Job {
			j := trace.Unknown
			j.Number, j.Submit, j.Run, j.Wanted = 1, 0, float64(run), int64(1+seed%uint64(machine))
			e := trace.Evolve{Share: 1, Shape: shape, Seed: seed, Shortest: 60}
			must.OK(t, e.Job(&j, machine))
			return j
		}
		j := of()
		if !cmp.Equal(j, of()) {
			t.Fatal("not the same again")
		}
		s := j.Shape
		if s == nil {
			if run >= 1000 && machine >= 8 && j.Size() >= 8 && shape != "uniform" {
				t.Fatalf("%s: %+v is still rigid", shape, j)
			}
			return
		}
		area, least := run*int64(j.Size()), int64(1<<40)
		for _, step := range s.Profile {
			least = min(least, int64(step.Nodes))
		}
		if off := s.Profile.Area() - area; off > 0 || off <= -least || s.Profile.Peak() > machine || run < 60 {
			t.Fatalf("%s: %s of %d node-seconds on %d nodes", shape, s.Profile, area, machine)
		}
		for _, p := range s.Alternatives {
			if off := p.Area() - area; off < 0 || off >= int64(p.Peak()) || p.Peak() > machine {
				t.Fatalf("%s: %s of %d node-seconds on %d nodes", shape, p, area, machine)
			}
		}
	})
	// By a speed-up: 1000 s on 8 nodes, half of it parallel, are 1111 s on 4 and 944 on 16.
	for _, shape := range []string{"moldable", "malleable"} {
		e := trace.Evolve{Share: 1, Shape: shape, Speedup: malleable.Amdahl(.5)}
		j := trace.Unknown
		j.Submit, j.Run, j.Wanted = 0, 1000, 8
		must.OK(t, e.Job(&j, 100))
		var text strings.Builder
		w, err := trace.NewWriter(&text, "json", trace.Header{Nodes: 100})
		must.OK(t, err)
		must.OK(t, errors.Join(w.Write(j), w.Close()))
		back, err := trace.Read(strings.NewReader(text.String()))
		if err != nil || len(back.Jobs) != 1 || !cmp.Equal(back.Jobs[0].Shape.Speedup, j.Shape.Speedup) {
			t.Errorf("%s: %v, %v", text.String(), back, err)
		}
		if shape == "moldable" && fmt.Sprint(j.Shape.Profile, j.Shape.Alternatives) != "8@16m40s [4@18m32s 16@15m45s]" {
			t.Errorf("%v, %v", j.Shape.Profile, j.Shape.Alternatives)
		}
		if shape == "malleable" && (j.Shape.Speedup != malleable.Amdahl(.5) || j.Shape.Min != 2 || j.Shape.Max != 8) {
			t.Errorf("%+v", j.Shape)
		}
	}
	// A third of many, and other ones with another seed.
	drawn := func(seed uint64) (n int, which string) {
		e := trace.Evolve{Share: 1. / 3, Shape: "ramp", Seed: seed}
		for range 3000 {
			j := trace.Unknown
			j.Submit, j.Run, j.Wanted = 0, 1000, 8
			must.OK(t, e.Job(&j, 100))
			if which += "."; j.Shape != nil {
				n++
				which += "!"
			}
		}
		return n, which
	}
	n, a := drawn(1)
	if _, b := drawn(2); n < 900 || n > 1100 || a == b {
		t.Errorf("%d of 3000 evolve", n)
	}
}
