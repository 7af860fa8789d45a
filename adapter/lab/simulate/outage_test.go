package simulate_test

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// TestOutages: jobs keep off nodes that are out, and with an announced outage also off its time before.
func TestOutages(t *testing.T) {
	job := func(id string, submit, seconds, limit int64, cpus int) simulate.Submission {
		return simulate.Submission{ID: id, Submit: submit, Limit: limit, CPUs: cpus, Profile: planner.Profile{{Duration: seconds, Nodes: 2}}}
	}
	for name, c := range map[string]struct {
		outages []simulate.Outage
		starts  [3][2]int64 // first and last second of each
	}{
		"none":      {nil, [3][2]int64{{0, 5}, {600, 630}, {600, 630}}},
		"drained":   {[]simulate.Outage{{From: 100, Until: 2000, Nodes: []string{"n1"}, Announced: -1}}, [3][2]int64{{0, 5}, {2000, 2060}, {2000, 2060}}},
		"announced": {[]simulate.Outage{{From: 1000, Until: 2000, Nodes: []string{"n1"}, Announced: 50}}, [3][2]int64{{0, 5}, {2000, 2060}, {2000, 2060}}},
		"since":     {[]simulate.Outage{{From: -50, Until: 100, Nodes: []string{"n2"}, Announced: 0}}, [3][2]int64{{100, 160}, {700, 790}, {700, 790}}},
	} {
		e := simulate.Experiment{Config: config.Default(), Strategy: noX(t), Cluster: slurmsim.Options{Nodes: 2, CPUs: 4}, Outages: c.outages,
			Jobs: []simulate.Submission{job("a", 1, 600, 660, 0), job("b", 60, 600, 660, 2), job("c", 61, 600, 660, 2)}} // the last two side by side
		r, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range r.Jobs {
			if w := c.starts[i]; j.Start < w[0] || j.Start > w[1] || j.State != "COMPLETED" {
				t.Errorf("%s: job %s starts at %d (%s), want within %v", name, j.ID, j.Start, j.State, w)
			}
		}
	}
}
