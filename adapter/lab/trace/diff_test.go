package trace_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
)

// TestDiffPlainly: the same as of all jobs of one trace looked up in the other.
func TestDiffPlainly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs [2][]trace.Job
		var starts [2]trace.Starts
		for i := range jobs {
			for _, number := range rapid.SliceOfNDistinct(rapid.Int64Range(0, 30), 0, 20, rapid.ID).Draw(t, "numbers") {
				j := trace.Unknown
				j.Number, j.Submit, j.Processors = number, rapid.Float64Range(0, 9).Draw(t, "submit"), 1
				j.Wait = float64(rapid.IntRange(-1, 5).Draw(t, "wait"))
				j.Run = float64(rapid.IntRange(0, 5).Draw(t, "run"))
				if rapid.Bool().Draw(t, "whole seconds") {
					j.Submit = math.Floor(j.Submit)
				}
				jobs[i] = append(jobs[i], j)
				starts[i].Add(j)
			}
		}
		got, err := trace.Diff(&starts[0], &starts[1])
		want, silent := plainDiff(jobs)
		if silent != (err != nil) {
			t.Fatalf("%v", err)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// plainDiff has the difference, or that one trace does not tell when its jobs started.
func plainDiff(jobs [2][]trace.Job) (d trace.Difference, silent bool) {
	var started [2][]trace.Job
	var firsts [2]float64
	for i := range jobs {
		first, ran := math.Inf(1), 0
		for _, j := range jobs[i] {
			if j.Ran() {
				first = min(first, j.Submit)
				ran++
			}
		}
		for _, j := range jobs[i] {
			if j.Ran() && j.Wait >= 0 {
				started[i] = append(started[i], j)
				d.Makespan[i] = max(d.Makespan[i], j.Start()+j.Run-first)
			}
		}
		firsts[i], silent = first, silent || ran > 0 && len(started[i]) == 0
	}
	var later, earlier []float64
	for _, p := range started[0] {
		at := slices.IndexFunc(started[1], func(q trace.Job) bool { return q.Number == p.Number })
		if at < 0 {
			d.OnlyA++
			continue
		}
		d.Both++
		q := started[1][at]
		j := trace.JobDifference{Number: p.Number, A: p.Start() - firsts[0], B: q.Start() - firsts[1], EndA: p.Start() + p.Run - firsts[0], EndB: q.Start() + q.Run - firsts[1]}
		if delay := j.B - j.A; delay > 0 {
			later = append(later, delay)
		} else if delay < 0 {
			earlier = append(earlier, -delay)
		}
		if j.A != j.B || j.EndA != j.EndB {
			d.Jobs = append(d.Jobs, j)
		}
	}
	slices.SortFunc(d.Jobs, func(x, y trace.JobDifference) int { return int(x.Number - y.Number) })
	slices.SortStableFunc(d.Jobs, func(x, y trace.JobDifference) int {
		if later := (y.B - y.A) - (x.B - x.A); later != 0 {
			return int(math.Copysign(1, later))
		}
		return 0
	})
	for _, j := range d.Jobs {
		d.Mean += j.B - j.A
	}
	d.OnlyB = len(started[1]) - d.Both
	d.Earlier, d.Later, d.Same = len(earlier), len(later), d.Both-len(earlier)-len(later)
	d.Delay, d.Gain = trace.SpreadOf(later), trace.SpreadOf(earlier)
	if d.Both > 0 {
		d.Mean /= float64(d.Both)
	}
	return d, silent
}
