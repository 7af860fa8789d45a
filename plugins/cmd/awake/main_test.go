package main

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/plugins/strategytest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestConforms(t *testing.T) { strategytest.Run(t, strategytest.Built(definition)) }

// TestSparesSleepers checks that a job waits for nodes that are up, but not for too long, nor if too few are up.
func TestSparesSleepers(t *testing.T) {
	sets := []planner.NodeSet{{Nodes: 4, Free: 1}, {Nodes: 4, Free: 4, Power: planner.PoweredDown, Ready: 30}}
	for name, c := range map[string]struct {
		sets  []planner.NodeSet
		wait  int64
		nodes int
		start int64
	}{
		"waits":            {sets, 60, 2, 90},
		"one node is up":   {sets, 60, 1, 0},
		"not for long":     {sets, 59, 2, 30},
		"too few are up":   {sets, 60, 5, 30},
		"nothing is known": {nil, 60, 2, 30},
		"all sleep":        {[]planner.NodeSet{{Nodes: 8, Free: 8, Power: planner.PoweredDown, Ready: 30}}, 60, 2, 30},
	} {
		r := strategy.Request{Sets: c.sets, Problem: planner.Problem{Nodes: 8, Busy: []planner.Busy{{Duration: 90, Nodes: 3}, {Duration: 30, Nodes: 4}},
			Jobs: []planner.Job{{ID: "1", Profile: planner.Profile{{Duration: 100, Nodes: c.nodes}}}}}}
		a, err := strategy.Run(t.Context(), awake{c.wait}, r)
		must.OK(t, err)
		if got := a.Schedule[0].Start; got != c.start {
			t.Errorf("%s: it starts at second %d, want %d", name, got, c.start)
		}
	}
}
