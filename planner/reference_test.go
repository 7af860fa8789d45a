package planner

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

// naiveFits lists, by exhaustive search, the start times of all steps of every valid placement that
// completes by deadline, in lexical order.
func naiveFits(res naive.Timeline, capacity int, p Profile, o FitOptions, deadline int64) [][]int64 {
	var all [][]int64
	starts := make([]int64, len(p))
	var place func(i int, earliest int64)
	place = func(i int, earliest int64) {
		for s := earliest; s+p[i:].Duration() <= deadline; s++ {
			if i == 0 && o.Fixed && s != o.NotBefore {
				return
			}
			if i > 0 {
				if s-starts[i-1] > plannertest.NaiveLongest(p, o, i-1) || !res.Free(starts[i-1], s, p[i-1].Nodes, capacity) {
					return
				}
			}
			if !res.Free(s, s+p[i].Duration, p[i].Nodes, capacity) {
				continue
			}
			starts[i] = s
			if i+1 == len(p) {
				all = append(all, append([]int64(nil), starts...))
				return // later ends of the same prefix are not earlier
			}
			place(i+1, s+p[i].Duration)
		}
	}
	place(0, o.NotBefore)
	return all
}

func naiveWaste(p Profile, starts []int64) int64 {
	waste := int64(0)
	for i := range len(p) - 1 {
		waste += (starts[i+1] - starts[i] - p[i].Duration) * int64(p[i].Nodes)
	}
	return waste
}

func mustStrategy(t testing.TB, name string) Strategy {
	t.Helper()
	s, err := StrategyByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkPlacement checks C1 for one placement.
func checkPlacement(j Job, placed Placement, limit ExpandLimit) error {
	return Verify(Problem{Nodes: MaxNodes, Jobs: []Job{j}}, Schedule{placed}, limit)
}
