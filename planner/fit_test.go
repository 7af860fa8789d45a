package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

// TestFitPaperExample is the paper's example (section 3.1): a two-step job waits 2000 s before its
// start, and 15 s between its steps.
func TestFitPaperExample(t *testing.T) {
	var res Timeline
	res.Add(0, 2000, 100)
	res.Add(2000, 2515, 95)
	requested := Profile{{500, 5}, {3600, 10}}
	want := Placement{Start: 2000, Steps: Profile{{515, 5}, {3600, 10}}}
	got, ok := Fit(&res, 100, requested, FitOptions{Limit: 2, NotBefore: 2000, Fixed: true})
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("as printed (-want +got):\n%s", diff)
	}
	want = Placement{Start: 2015, Steps: requested}
	got, ok = Fit(&res, 100, requested, FitOptions{Limit: 2})
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("base fit, which delays the first step rather than expand it (-want +got):\n%s", diff)
	}
}

func TestFitTable(t *testing.T) {
	busy := func(spans ...Span) *Timeline {
		var res Timeline
		for _, s := range spans {
			res.Add(s.Start, s.End, s.Nodes)
		}
		return &res
	}
	for _, c := range []struct {
		name     string
		res      *Timeline
		capacity int
		profile  Profile
		options  FitOptions
		want     Placement
		fails    bool
	}{
		{name: "empty cluster", res: busy(), capacity: 4, profile: Profile{{10, 4}, {5, 1}},
			want: Placement{Start: 0, Steps: Profile{{10, 4}, {5, 1}}}},
		{name: "not before", res: busy(), capacity: 4, profile: Profile{{10, 4}}, options: FitOptions{NotBefore: 7},
			want: Placement{Start: 7, Steps: Profile{{10, 4}}}},
		{name: "larger than the cluster", res: busy(), capacity: 4, profile: Profile{{10, 5}}, fails: true},
		{name: "busy forever", res: busy(Span{0, Forever, 1}), capacity: 4, profile: Profile{{10, 4}}, fails: true},
		{name: "before busy forever", res: busy(Span{10, Forever, 1}), capacity: 4, profile: Profile{{10, 4}},
			want: Placement{Start: 0, Steps: Profile{{10, 4}}}},
		{name: "beside busy forever", res: busy(Span{0, Forever, 1}, Span{0, 5, 1}), capacity: 4, profile: Profile{{10, 3}},
			want: Placement{Start: 5, Steps: Profile{{10, 3}}}},
		{name: "no expansion: delayed as a whole", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: 1},
			want: Placement{Start: 20, Steps: Profile{{10, 1}, {5, 2}}}},
		{name: "the first step is delayed, not expanded", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: Infinite},
			want: Placement{Start: 20, Steps: Profile{{10, 1}, {5, 2}}}},
		{name: "expanded within the limit", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{1, 1}, {10, 1}, {5, 2}}, options: FitOptions{Limit: 2},
			want: Placement{Start: 9, Steps: Profile{{1, 1}, {20, 1}, {5, 2}}}},
		{name: "expanded without bound", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{1, 1}, {10, 1}, {5, 2}}, options: FitOptions{Limit: Infinite},
			want: Placement{Start: 0, Steps: Profile{{1, 1}, {29, 1}, {5, 2}}}},
		{name: "compacted", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{1, 1}, {10, 1}, {5, 2}}, options: FitOptions{Limit: Infinite, Compact: true},
			want: Placement{Start: 19, Steps: Profile{{1, 1}, {10, 1}, {5, 2}}}},
		{name: "fractional limit is rounded down", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{1, 1}, {9, 1}, {5, 2}}, options: FitOptions{Limit: 1.5},
			want: Placement{Start: 16, Steps: Profile{{1, 1}, {13, 1}, {5, 2}}}},
		{name: "fixed waits", res: busy(Span{10, 30, 3}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: 3, Fixed: true},
			want: Placement{Start: 0, Steps: Profile{{30, 1}, {5, 2}}}},
		{name: "fixed may not wait so long", res: busy(Span{10, 31, 3}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: 3, Fixed: true},
			fails: true},
		{name: "fixed with an allowance of its own", res: busy(Span{10, 31, 3}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: 3, Fixed: true, MaxDuration: []int64{31}},
			want: Placement{Start: 0, Steps: Profile{{31, 1}, {5, 2}}}},
		{name: "allowance below the duration counts as the duration", res: busy(), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Limit: 3, Fixed: true, MaxDuration: []int64{1}},
			want: Placement{Start: 0, Steps: Profile{{10, 1}, {5, 2}}}},
		{name: "fixed that cannot hold", res: busy(Span{5, 6, 4}), capacity: 4, profile: Profile{{10, 1}, {5, 2}}, options: FitOptions{Fixed: true}, fails: true},
		{name: "no steps", res: busy(), capacity: 4, fails: true},
		{name: "ends beyond the horizon", res: busy(), capacity: 4, profile: Profile{{10, 1}}, options: FitOptions{NotBefore: Forever - 5}, fails: true},
		{name: "compacting would waste more", res: busy(Span{1, 500, 10}), capacity: 60,
			profile: Profile{{1, 60}, {1, 50}, {100, 1}, {10, 60}}, options: FitOptions{Limit: Infinite, Compact: true},
			want: Placement{Start: 0, Steps: Profile{{1, 60}, {1, 50}, {498, 1}, {10, 60}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := Fit(c.res, c.capacity, c.profile, c.options)
			if ok == c.fails {
				t.Fatalf("ok = %v, placed %v", ok, got)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFitExhaustive compares with all possible placements of small cases: the base fit is the
// earliest of all, step by step. The compacted fit completes at the same second, starts no earlier,
// and wastes no more.
func TestFitExhaustive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 6).Draw(t, "capacity")
		busy := plannertest.DrawBusy(t, capacity, 16)
		naive, res := make(naive.Timeline, 64), new(Timeline)
		for _, b := range busy {
			naive.Add(b.Start, b.Start+b.Duration, b.Nodes)
			res.Add(b.Start, b.Start+b.Duration, b.Nodes)
		}
		p := plannertest.DrawProfile(t, 4, 4, capacity)
		o := FitOptions{NotBefore: rapid.Int64Range(0, 8).Draw(t, "not before"), Limit: plannertest.DrawLimit(t)}
		if rapid.Bool().Draw(t, "fixed") {
			o.Fixed = true
			o.MaxDuration = []int64{rapid.Int64Range(0, 12).Draw(t, "allowance")}
		}
		all := naiveFits(naive, capacity, p, o, 16+p.Duration())
		base, ok := Fit(res, capacity, p, o)
		if ok != (len(all) > 0) {
			t.Fatalf("fits = %v, exhaustive search finds %d placements", ok, len(all))
		}
		if !ok {
			return
		}
		starts := base.Boundaries()[:len(p)]
		found := false
		for _, other := range all {
			for i := range starts {
				if other[i] < starts[i] && (i > 0 || o.Fixed || len(p) == 1) {
					t.Fatalf("step %d starts at %v, could at %v", i, starts, other)
				}
			}
			found = found || slices.Equal(other, starts)
		}
		if len(p) > 1 && !o.Fixed && starts[1]-starts[0] != p[0].Duration {
			t.Fatalf("the first step is expanded: %v", base)
		}
		if !found {
			t.Fatalf("%v is not among the valid placements", starts)
		}
		o.Compact = true
		compact, ok := Fit(res, capacity, p, o)
		if !ok {
			t.Fatal("compacting fails")
		}
		compacted := compact.Boundaries()[:len(p)]
		if !slices.ContainsFunc(all, func(s []int64) bool { return slices.Equal(s, compacted) }) {
			t.Fatalf("compacted %v is not among the valid placements", compacted)
		}
		if compact.End() != base.End() || compact.Start < base.Start {
			t.Fatalf("compacted %v from %v", compact, base)
		}
		if o.Fixed && compact.Start != o.NotBefore {
			t.Fatalf("compacting moved a running job to %d", compact.Start)
		}
		if naiveWaste(p, compacted) > naiveWaste(p, starts) {
			t.Fatalf("compacting wastes more: %v from %v", compact, base)
		}
		// If the latest of all placements wastes no more, it is chosen.
		latest := slices.Clone(starts)
		for _, s := range all {
			if s[len(s)-1] == starts[len(p)-1] {
				for i := range s {
					latest[i] = max(latest[i], s[i])
				}
			}
		}
		if naiveWaste(p, latest) <= naiveWaste(p, starts) && !slices.Equal(compacted, latest) {
			t.Fatalf("compacted to %v, latest is %v", compacted, latest)
		}
	})
}
