package builtin

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// made returns auto with some parameters.
func made(t *testing.T, set map[string]string) auto {
	t.Helper()
	v, err := Auto().Values(set)
	must.OK(t, err)
	s, err := newAuto(v)
	must.OK(t, err)
	return s.(auto)
}

// shuffled is a list whose order is not the best one: c, a, b, d needs 30 seconds, and the list's order 40.
var shuffled = planner.Problem{Nodes: 4, Jobs: []planner.Job{
	{ID: "a", Profile: planner.Profile{{Duration: 10, Nodes: 2}}},
	{ID: "b", Profile: planner.Profile{{Duration: 10, Nodes: 1}}},
	{ID: "c", Profile: planner.Profile{{Duration: 20, Nodes: 2}}},
	{ID: "d", Profile: planner.Profile{{Duration: 10, Nodes: 3}}},
}}

// TestAutoTakesTheBest checks whose plan is taken.
func TestAutoTakesTheBest(t *testing.T) {
	// Two of four nodes are in use from 10 s to 40 s. Without expansion, the job begins after that.
	held := planner.Problem{Nodes: 4, Busy: []planner.Busy{{Start: 10, Duration: 30, Nodes: 2}},
		Jobs: []planner.Job{{ID: "a", Profile: planner.Profile{{Duration: 10, Nodes: 3}, {Duration: 10, Nodes: 1}, {Duration: 10, Nodes: 3}}}}}
	tooLarge := shuffled
	tooLarge.Nodes, tooLarge.Busy = 5, []planner.Busy{{Duration: planner.Forever, Nodes: 1}}
	tooLarge.Jobs = append([]planner.Job{{ID: "e", Profile: planner.Profile{{Duration: 10, Nodes: 5}}}}, shuffled.Jobs...)
	order := map[string]string{"fair": "false", "objective": "makespan"}
	for name, c := range map[string]struct {
		set   map[string]string
		p     planner.Problem
		want  string
		unfit int
	}{
		"one job, and all plans are alike": {nil, planner.Problem{Nodes: 4, Jobs: shuffled.Jobs[:1]}, "noX", 0},
		"expansion pays":                   {map[string]string{"expand_limit": "3"}, held, "klein", 0},
		"expansion is not enough":          {map[string]string{"expand_limit": "2"}, held, "noX", 0},
		"expansion wastes":                 {map[string]string{"expand_limit": "3", "objective": "waste"}, held, "noX", 0},
		"another order is shorter":         {order, shuffled, "search", 0},
		"the list's order is kept":         {map[string]string{"objective": "makespan"}, shuffled, "noX", 0},
		"a job fits nowhere":               {order, tooLarge, "search", 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := made(t, c.set).PlanRequest(t.Context(), strategy.Request{Problem: c.p})
			must.OK(t, err)
			if a.By != c.want || len(a.Unfit) != c.unfit {
				t.Errorf("the plan is of %s, and %d jobs fit nowhere; want %s and %d", a.By, len(a.Unfit), c.want, c.unfit)
			}
		})
	}
}

// TestAutoEnds checks that no strategy begins once the time is over, except the first one.
func TestAutoEnds(t *testing.T) {
	late := made(t, map[string]string{"fair": "false", "objective": "makespan"})
	late.time = -1
	a, err := late.PlanRequest(t.Context(), strategy.Request{Problem: shuffled})
	must.OK(t, err)
	if a.By != "noX" {
		t.Errorf("the plan is of %s, want noX", a.By)
	}
}

// TestAutoIsNeverWorse checks that no member's plan is better, for each objective, on the paper's workloads.
func TestAutoIsNeverWorse(t *testing.T) {
	of := map[string]func(planner.Metrics) float64{
		"makespan":        func(m planner.Metrics) float64 { return float64(m.Makespan) },
		"mean-completion": func(m planner.Metrics) float64 { return m.AvgCompletion },
		"waste":           func(m planner.Metrics) float64 { return m.Waste },
	}
	for objective, value := range of {
		s := made(t, map[string]string{"objective": objective, "time": "1m"})
		for i := range 20 {
			p := workload.DefaultPaper.Generate(1, i)
			best, err := s.Plan(p)
			must.OK(t, err)
			for _, m := range s.members {
				plan, err := m.Plan(p)
				must.OK(t, err)
				if got, want := value(planner.Measure(p, best)), value(planner.Measure(p, plan)); got > want {
					t.Errorf("%s of workload %d: %v, and %s has %v", objective, i, got, m.name, want)
				}
			}
		}
	}
}
