package planner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

// paperFit is Algorithm 2 of the paper as printed, including recursion (line 17 with i > 1), over a
// second-by-second resource EP. Its comments are the paper's line numbers. A nil profile stands for
// ∅.
func paperFit(res naive.Timeline, nodes int, req Profile, l ExpandLimit, i int, t0 int64) (int64, Profile) {
	most := func(a, b int64) (most int, loc int64) {
		for t := a; t < b; t++ {
			if n := res.At(t); n >= most {
				most, loc = n, t+1
			}
		}
		return most, loc
	}
	if i > len(req) { // 1
		return t0, Profile{} // 2
	}
	d, n := req[i-1].Duration, req[i-1].Nodes // 3
	ts := t0                                  // 4
	for {                                     // 5
		if m, loc := most(ts, ts+d); nodes-m < n { // 6
			ts = loc // 7
			continue
		}
		if i > 1 { // 8
			previous := req[i-2]
			if l != Infinite { // an infinite limit is never exceeded
				if eas := ts - l.Stretch(previous.Duration); eas > t0-previous.Duration { // 9, 10
					return eas, nil // 11
				}
			}
			if m, loc := most(t0, ts); nodes-m < previous.Nodes { // 12
				return loc, nil // 13
			}
		}
		tail, x := paperFit(res, nodes, req, l, i+1, ts+d) // 14
		if x == nil {                                      // 15
			ts = tail // 16
			continue
		}
		if i > 1 { // 17
			// The step lasts until its successor starts. (The recursion returns the start of the
			// tail; for the last step, this is its end.)
			return ts, append(Profile{{tail - ts, n}}, x...)
		}
		return tail - d, append(Profile{{d, n}}, x...) // 18–20
	}
}

// TestPaperAlgorithm2 checks that Fit returns what the paper's algorithm returns, to the second.
func TestPaperAlgorithm2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 8).Draw(t, "capacity")
		naive, res := make(naive.Timeline, 200), new(Timeline)
		for _, b := range plannertest.DrawBusy(t, capacity, 60) {
			naive.Add(b.Start, b.Start+b.Duration, b.Nodes)
			res.Add(b.Start, b.Start+b.Duration, b.Nodes)
		}
		p, limit := plannertest.DrawProfile(t, 6, 8, capacity), plannertest.DrawLimit(t)
		start, steps := paperFit(naive, capacity, p, limit, 1, 0)
		got, ok := Fit(res, capacity, p, FitOptions{Limit: limit})
		if !ok || got.Start != start || !slices.Equal(got.Steps, steps) {
			t.Fatalf("got %v, the paper's algorithm gives %d %v", got, start, steps)
		}
	})
}
