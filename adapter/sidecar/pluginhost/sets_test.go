package pluginhost

import (
	"testing"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestNodeSets checks that a plugin that plans by sets of nodes gets them, and that one of an older contract plans as before.
func TestNodeSets(t *testing.T) {
	r := newRig(t, "noX", "awake", "old")
	for name, want := range map[string]int64{"awake": 100, "old": 100, "noX": 30} {
		r.use(name)
		asked := false
		c := r.Begin(large)
		c.Sort(func() []planner.NodeSet {
			asked = true
			return []planner.NodeSet{{Nodes: 2, Free: 1}, {Nodes: 6, Free: 6, Power: planner.PoweredDown, Ready: 30}}
		})
		pool := planner.Pool{Nodes: 8, Busy: []planner.NodeBusy{{Node: 0, Start: 0, End: 100}}, Jobs: []planner.PoolJob{{Driver: -1,
			Job: planner.Job{ID: "1", ExpandLimit: 1, Profile: planner.Profile{{Duration: 60, Nodes: 2}}}}}}
		for n := 2; n < 8; n++ {
			pool.Busy = append(pool.Busy, planner.NodeBusy{Node: n, Start: 0, End: 30})
		}
		got, err := pool.Plan(c)
		must.OK(t, err)
		c.End()
		if c.Fallen() != nil || got[0].Start != want || asked != (name == "awake") {
			t.Errorf("%s: %+v, %v, asked %v", name, got, c.Fallen(), asked)
		}
	}
}
