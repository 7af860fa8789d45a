package search_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/search"
)

// TestEnergy: a job starts right after another on its nodes if the idle time that this saves is worth its wait. Of 10 nodes, 5
// are in use for 100 s.
func TestEnergy(t *testing.T) {
	for what, c := range map[string]struct {
		wait  int64
		steps profile.Profile
		start int64
	}{
		"waits for nodes that are on":           {600, profile.Profile{{Duration: 1000, Nodes: 5}}, 100},
		"for as long as the idle time is worth": {101, profile.Profile{{Duration: 1000, Nodes: 5}}, 100},
		"no longer":                             {100, profile.Profile{{Duration: 1000, Nodes: 5}}, 0},
		"never":                                 {0, profile.Profile{{Duration: 1000, Nodes: 5}}, 0},
		"not where it saves too little":         {250, profile.Profile{{Duration: 1000, Nodes: 9}}, 100},
		"so that it grows onto them":            {600, profile.Profile{{Duration: 60, Nodes: 1}, {Duration: 1000, Nodes: 6}}, 40},
	} {
		p := paper.Problem{Nodes: 10, Busy: []paper.Busy{{Duration: 100, Nodes: 5}}, Jobs: []paper.Job{{ID: "a", Profile: c.steps}}}
		plan, err := search.Energy{Wait: c.wait, Restart: 300}.Plan(p)
		if err != nil || plan[0].Start != c.start {
			t.Errorf("%s: %v, %v, want a start at %d", what, plan, err, c.start)
		}
	}
}

// TestEnergyPlans: plans are valid, no job starts later than Wait after the earliest start beside the jobs before it, and without
// Wait the plan is noX's.
func TestEnergyPlans(t *testing.T) {
	noX, err := paper.ByName("noX")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := paper.Problem{Nodes: 8}
		for range rapid.IntRange(0, 4).Draw(t, "busy") {
			p.Busy = append(p.Busy, paper.Busy{Start: rapid.Int64Range(0, 500).Draw(t, "from"), Duration: rapid.Int64Range(1, 500).Draw(t, "for"), Nodes: 2})
		}
		for range rapid.IntRange(1, 8).Draw(t, "jobs") {
			var steps profile.Profile
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				steps = append(steps, profile.Step{Duration: rapid.Int64Range(1, 400).Draw(t, "duration"), Nodes: rapid.IntRange(1, 8).Draw(t, "nodes")})
			}
			p.Jobs = append(p.Jobs, paper.Job{ID: "j", Submit: rapid.Int64Range(0, 300).Draw(t, "submit"), Profile: steps})
		}
		e := search.Energy{Wait: rapid.Int64Range(0, 400).Draw(t, "wait"), Restart: rapid.Int64Range(1, 400).Draw(t, "restart")}
		plan, err := e.Plan(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := paper.Verify(p, plan, e.ExpandLimit()); err != nil {
			t.Fatal(err)
		}
		soonest, err := noX.Plan(p)
		if err != nil {
			t.Fatal(err)
		}
		res := p.Timeline()
		for i, j := range p.Jobs {
			first, ok := paper.Fit(res, p.Nodes, j.Profile, paper.FitOptions{NotBefore: j.Submit, Limit: 1})
			if !ok || plan[i].Start < first.Start || plan[i].Start > first.Start+e.Wait || e.Wait == 0 && plan[i].Start != soonest[i].Start {
				t.Fatalf("job %d starts at %d, at the earliest at %d, wait %d", i, plan[i].Start, first.Start, e.Wait)
			}
			res.AddPlacement(plan[i])
		}
	})
}

func TestEnergyByName(t *testing.T) {
	for text, want := range map[string]search.Energy{"energy": {600, 300}, "energy+1h": {3600, 300}, "energy+90s": {90, 300}, "energy+3600s": {3600, 300}} {
		s, err := search.EnergyByName(text)
		if err != nil || s != want {
			t.Errorf("%s: %v, %v", text, s, err)
			continue
		}
		if again, err := search.EnergyByName(s.Name()); err != nil || again != s {
			t.Errorf("%s: its name %s is not understood", text, s.Name())
		}
	}
	for _, text := range []string{"energy+", "energy+0", "energy1h", "energy+-1h", "energy+1X"} {
		if s, err := search.EnergyByName(text); err == nil {
			t.Errorf("%s: %v", text, s)
		}
	}
}
