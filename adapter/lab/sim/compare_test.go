package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func compared(t *testing.T, tests int) ([]planner.Problem, []planner.Strategy) {
	t.Helper()
	var workloads []planner.Problem
	for test := range tests {
		workloads = append(workloads, workload.DefaultPaper.Generate(3, test))
	}
	var strategies []planner.Strategy
	for _, name := range []string{"rigid", "noX", "infX+c", "minwaste"} {
		s, err := planner.StrategyByName(name)
		must.OK(t, err)
		strategies = append(strategies, s)
	}
	return workloads, append(strategies, planner.Search{MaxEvaluations: 3000})
}

// TestCompare checks that results are in their places with any number of workers.
func TestCompare(t *testing.T) {
	workloads, strategies := compared(t, 5)
	for _, workers := range []int{0, 1, 7} {
		plans := 0
		c, err := sim.Compare(t.Context(), workloads, strategies, workers, func() { plans++ })
		if err != nil || plans != len(workloads)*len(strategies) {
			t.Fatalf("%d plans, %v", plans, err)
		}
		for w, p := range workloads {
			for s, strategy := range strategies {
				want, err := strategy.Plan(p)
				must.OK(t, err)
				got := c.Outcomes[w][s]
				if diff := cmp.Diff(want, got.Schedule); diff != "" {
					t.Fatalf("workload %d, %s (-want +got):\n%s", w, strategy.Name(), diff)
				}
				if bound := planner.LowerBound(p, planner.Makespan, planner.Infinite).Value; got.Bound != bound {
					t.Errorf("workload %d: bound %v, want %v", w, got.Bound, bound)
				}
			}
		}
		noX, search := c.Summary(sim.Figures[0], 1), c.Summary(sim.Figures[0], 4)
		if sim.Figures[0].Name != "makespan" || !(search.Avg < noX.Avg) || noX.Min > noX.Avg || noX.Avg > noX.Max {
			t.Errorf("makespan: search %v, noX %v", search, noX)
		}
		for _, f := range sim.Figures {
			if f.Name == "waste" {
				if least, compact := c.Summary(f, 3), c.Summary(f, 2); least.Avg > compact.Avg {
					t.Errorf("minwaste wastes %v %%, infX+c %v %%", least.Avg, compact.Avg)
				}
			}
		}
	}
}

// TestCompareErrors covers a job that fits nowhere, and a caller that stops.
func TestCompareErrors(t *testing.T) {
	workloads, strategies := compared(t, 3)
	workloads = append(workloads, planner.Problem{Nodes: 1, Busy: []planner.Busy{{Start: 0, Duration: planner.Forever, Nodes: 1}},
		Jobs: []planner.Job{{ID: "x", Profile: planner.Profile{{Duration: 1, Nodes: 1}}}}})
	var fit *planner.FitError
	if _, err := sim.Compare(t.Context(), workloads, strategies, 2, nil); !errors.As(err, &fit) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	plans := 0
	_, err := sim.Compare(ctx, workloads[:3], strategies, 2, func() { plans++; cancel() })
	if !errors.Is(err, context.Canceled) || plans > 2 {
		t.Errorf("%d plans, %v", plans, err)
	}
}
