package planner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
)

// crowd returns a busy cluster of 1,000 nodes as the sidecar sees it: stock jobs run on 950 of
// them, 500 wait, and 1,000 evolving jobs wait behind them.
func crowd() planner.Pool {
	const nodes, stock, evolving = 1000, 500, 1000
	random := rand.New(rand.NewPCG(1, 2))
	pool := planner.Pool{Nodes: nodes}
	for n := 0; n < 950; {
		end := 60 + random.Int64N(7200)
		for size := 1 + random.IntN(9); size > 0 && n < 950; size-- {
			pool.Busy = append(pool.Busy, planner.NodeBusy{Node: n, End: end})
			n++
		}
	}
	add := func(driver int, p planner.Profile) {
		pool.Jobs = append(pool.Jobs, planner.PoolJob{Driver: driver,
			Job: planner.Job{ID: fmt.Sprint(len(pool.Jobs)), Profile: planner.Pad(p, 2), ExpandLimit: 1}})
	}
	for range stock {
		add(-1, planner.Profile{{Duration: 60 * (1 + random.Int64N(60)), Nodes: 1 + random.IntN(50)}})
	}
	for range evolving {
		var p planner.Profile
		for range 5 {
			p = append(p, planner.Step{Duration: 60 + random.Int64N(1800), Nodes: 1 + random.IntN(60)})
		}
		add(planner.Lowest, p)
	}
	return pool
}

// prefers lets the evolving jobs prefer the nodes of a plan.
func prefers(pool planner.Pool, planned []planner.Planned) {
	for i := range pool.Jobs {
		if pool.Jobs[i].Driver == planner.Lowest {
			var all []int
			for _, nodes := range planned[i].Nodes {
				all = append(all, nodes...)
			}
			slices.Sort(all)
			pool.Jobs[i].Prefer = slices.Compact(all)
		}
	}
}

// BenchmarkPool plans what the sidecar plans in a cycle, node by node.
func BenchmarkPool(b *testing.B) {
	s, pool := strategy(b, "noX"), crowd()
	planned, err := pool.Plan(s)
	if err != nil {
		b.Fatal(err)
	}
	prefers(pool, planned)
	for _, name := range []string{"numbers", "switches"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer measureCPU(b)()
			for b.Loop() {
				if _, err := pool.Plan(s); err != nil {
					b.Fatal(err)
				}
			}
		})
		pool.Switches = switches(pool.Nodes, 20)
	}
}

// switches returns a tree with so many nodes on each leaf.
func switches(nodes, each int) *planner.Switches {
	s := &planner.Switches{Above: append(slices.Repeat([]int{nodes / each}, nodes/each), -1)}
	for n := range nodes {
		s.Leaf = append(s.Leaf, n/each)
	}
	return s
}
