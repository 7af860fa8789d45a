package slurm

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TakeTopology stores what a poll of the configuration shows of the network.
func TakeTopology(c *state.Core, in *msg.Observation) {
	if in.NoTopology != nil {
		c.Log.WithError(in.NoTopology).Warn("cannot read the topology; placing jobs by the last known one")
		return
	}
	c.Topology = in.Topology
}

// WatchLayout has the topology read again if there are other nodes than before.
func WatchLayout(c *state.Core, s *state.Snapshot) {
	if c.Snapshot != nil && s.Layout != c.Snapshot.Layout && c.SlurmConfig.HasTopology() {
		c.ConfigRead = time.Time{}
	}
}

// SwitchesOf returns where the nodes of a pool (indices into the cluster's nodes) are in the network, and their weights; nil
// if neither tells one node from another.
func SwitchesOf(c *state.Core, s *state.Snapshot, pool []int) *planner.Switches {
	all := allSwitches(c.Topology, s)
	here := &planner.Switches{Above: all.Above, Leaf: make([]int, len(pool)), Weight: make([]int, len(pool))}
	differ := false
	for i, n := range pool {
		here.Leaf[i], here.Weight[i] = all.Leaf[n], all.Weight[n]
		differ = differ || here.Leaf[i] != here.Leaf[0] || here.Weight[i] != here.Weight[0]
	}
	if !differ {
		return nil
	}
	return here
}

// NearFirst sorts free nodes for a job that has some: first those on leaf switches that it has, then those on the leaf
// switches with the most of them.
func NearFirst(c *state.Core, s *state.Snapshot, has, names []string) {
	if len(c.Topology.Switches) == 0 {
		return
	}
	all, count := allSwitches(c.Topology, s), map[int]int{}
	leaf := func(name string) int { return all.Leaf[s.Index[name]] }
	for _, name := range names {
		count[leaf(name)]++
	}
	for _, name := range has {
		count[leaf(name)] += len(s.Nodes)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[leaf(b)], count[leaf(a)]), cmp.Compare(leaf(a), leaf(b)))
	})
}

// allSwitches places all nodes. A node on several leaves counts on the first one; those on none share one.
func allSwitches(t slurmctl.Topology, s *state.Snapshot) *planner.Switches {
	if s.Switches != nil {
		return s.Switches
	}
	none := len(t.Switches)
	all := &planner.Switches{Above: make([]int, none+1), Leaf: slices.Repeat([]int{none}, len(s.Nodes)), Weight: make([]int, len(s.Nodes))}
	all.Above[none] = -1
	for i, sw := range t.Switches {
		all.Above[i] = sw.Above
		for _, name := range sw.Nodes {
			if n, ok := s.Index[name]; ok && all.Leaf[n] == none {
				all.Leaf[n] = i
			}
		}
	}
	for i := range s.Nodes {
		all.Weight[i] = s.Nodes[i].Weight
	}
	s.Switches = all
	return all
}
