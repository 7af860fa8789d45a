package trace_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// anyJob returns a job with arbitrary known values.
func anyJob() *rapid.Generator[trace.Job] {
	whole := rapid.OneOf(rapid.Just[int64](-1), rapid.Int64Range(0, 100), rapid.Int64Range(-1, 1<<53))
	value := rapid.OneOf(rapid.Just(-1.), rapid.Float64Range(-1, 100), rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1 << 53, math.Inf(1)}))
	profile := rapid.Custom(func(t *rapid.T) planner.Profile {
		p := planner.Profile(nil)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			p = append(p, planner.Step{Duration: rapid.Int64Range(1, 1<<40).Draw(t, "duration"), Nodes: rapid.IntRange(1, planner.MaxNodes).Draw(t, "nodes")})
		}
		return p
	})
	shape := rapid.Custom(func(t *rapid.T) *trace.Shape {
		size := rapid.IntRange(0, planner.MaxNodes)
		s := &trace.Shape{ID: rapid.String().Draw(t, "ID"), Kind: rapid.SampledFrom([]trace.Kind{trace.Rigid, trace.Moldable, trace.Malleable, trace.Evolving}).Draw(t, "kind"),
			Profile:     rapid.OneOf(profile, rapid.SampledFrom([]planner.Profile{nil, {}})).Draw(t, "profile"),
			By:          rapid.SampledFrom([]planner.Preference{planner.ByCompletion, planner.ByWaste, planner.ByNodeHours}).Draw(t, "by"),
			ExpandLimit: rapid.SampledFrom([]planner.ExpandLimit{0, 1, 1.5, planner.ExpandLimit(math.Inf(1))}).Draw(t, "limit"),
			Min:         size.Draw(t, "min"), Max: size.Draw(t, "max"),
			Speedup: rapid.SampledFrom([]malleable.Speedup{nil, malleable.Amdahl(.5), malleable.Table{{Nodes: 1, Speedup: 1}, {Nodes: 4, Speedup: 3}}}).Draw(t, "speed-up")}
		for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
			s.Alternatives = append(s.Alternatives, profile.Draw(t, "alternative"))
		}
		return s
	})
	return rapid.Custom(func(t *rapid.T) trace.Job {
		w := func(name string) int64 { return whole.Draw(t, name) }
		v := func(name string) float64 { return value.Draw(t, name) }
		j := trace.Job{Number: w("number"), Submit: rapid.Float64Range(0, 3).Draw(t, "submit"), Wait: v("wait"), Run: v("run"), Processors: w("processors"), CPU: v("CPU"), Memory: v("memory"),
			Wanted: w("wanted"), Limit: v("limit"), WantedMemory: v("wanted memory"), Status: w("status"), User: w("user"), Group: w("group"), Application: w("application"),
			Queue: w("queue"), Partition: w("partition"), Preceding: w("preceding"), Think: v("think")}
		if rapid.Bool().Draw(t, "whole seconds") {
			j.Submit = math.Round(j.Submit)
		}
		j.More = rapid.OneOf(rapid.Just(""), rapid.String()).Draw(t, "more")
		if rapid.Bool().Draw(t, "shape") {
			j.Shape = shape.Draw(t, "of")
		}
		return j
	})
}

// TestPacked: jobs are what they were, and in order of submission what a stable sort makes of them.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(anyJob(), 0, 20).Draw(t, "jobs")
		var p trace.Packed
		for _, j := range want {
			p.Add(j)
		}
		same := func() {
			t.Helper()
			if diff := cmp.Diff(slices.Clip(want), append([]trace.Job{}, slices.Collect(p.All())...)); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
		}
		same()
		same() // once more
		slices.SortStableFunc(want, func(a, b trace.Job) int {
			switch {
			case a.Submit < b.Submit:
				return -1
			case a.Submit > b.Submit:
				return 1
			}
			return 0
		})
		p.Sort()
		same()
		from, until := rapid.Float64Range(0, 3).Draw(t, "from"), float64(rapid.IntRange(0, 3).Draw(t, "until"))
		want = slices.DeleteFunc(want, func(j trace.Job) bool { return j.Submit < from || j.Submit >= until })
		if diff := cmp.Diff(append([]trace.Job{}, want...), append([]trace.Job{}, slices.Collect(p.Between(from, until))...)); diff != "" {
			t.Fatalf("between %v and %v, -want +got:\n%s", from, until, diff)
		}
	})
}

// TestPackedBlocks covers jobs in many blocks, some of them larger than a block.
func TestPackedBlocks(t *testing.T) {
	var p trace.Packed
	of := func(i int) trace.Job {
		j := trace.Unknown
		j.Number, j.Submit = int64(i), float64(999-i)
		j.More = strings.Repeat("x", i*i*13%100_000)
		if i%300 == 7 {
			j.More = strings.Repeat("y", 3<<20+i)
		}
		return j
	}
	for i := range 1000 {
		p.Add(of(i))
	}
	p.Sort()
	n := 1000
	for j := range p.All() {
		if n--; j != of(n) {
			t.Fatalf("job %d is job %d, with %d bytes more", n, j.Number, len(j.More))
		}
	}
	if n != 0 {
		t.Errorf("%d jobs are missing", n)
	}
	for j := range p.All() { // and no further
		if j.Number < 990 {
			break
		}
	}
}
