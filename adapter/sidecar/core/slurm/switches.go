package slurm

import (
	"cmp"
	"maps"
	"slices"
	"strings"
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
	if c.Topology.Blocks {
		allSwitches(c.Topology, s)
	}
	s.Fabric = fabricOf(c, s)
	if c.Snapshot != nil && s.Layout != c.Snapshot.Layout && c.SlurmConfig.HasTopology() {
		c.ConfigRead = time.Time{}
	}
}

// SwitchesOf returns where the nodes of a pool (indices into the cluster's nodes) are in the network, and their weights; nil
// if neither tells one node from another.
func SwitchesOf(c *state.Core, s *state.Snapshot, pool []int) *planner.Switches {
	all := allSwitches(c.Topology, s)
	here := &planner.Switches{Blocks: all.Blocks, Above: all.Above, Leaf: make([]int, len(pool)), Weight: make([]int, len(pool))}
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

// MayStart reports whether Slurm could start a job with n nodes if all nodes that suit it were free.
func MayStart(c *state.Core, s *state.Snapshot, r *slurmctl.Job, n int) bool {
	return slices.ContainsFunc(strings.Split(r.Partition, ","), func(name string) bool {
		together, err := EligibleTogether(s, InPartition(r, name), nil)
		return err == nil && slices.ContainsFunc(together, func(nodes []int) bool { return allSwitches(c.Topology, s).Starts(nodes, n) })
	})
}

// Kinds returns what tells the cluster's nodes from each other, for strategies that plan by it.
func Kinds(c *state.Core, s *state.Snapshot) *msg.Kinds {
	k := &msg.Kinds{Nodes: s.Nodes, Switches: allSwitches(c.Topology, s), Names: make([]string, len(c.Topology.Switches))}
	for i, sw := range c.Topology.Switches {
		k.Names[i] = sw.Name
	}
	return k
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
	if t.Blocks {
		all.Blocks = blocksOf(t)
	}
	for i := range s.Nodes {
		all.Weight[i] = s.Nodes[i].Weight
	}
	s.Switches = all
	return all
}

// blocksOf returns the site's blocks. Slurm before 24.11 does not say how many nodes of a block count: then, the smallest one
// does.
func blocksOf(t slurmctl.Topology) *planner.Blocks {
	b := &planner.Blocks{Count: len(t.Switches), Size: t.BlockSize, Levels: append([]int{1}, t.Levels...)}
	for _, block := range t.Switches {
		if t.BlockSize == 0 && (b.Size == 0 || len(block.Nodes) < b.Size) {
			b.Size = len(block.Nodes)
		}
	}
	b.Size = max(b.Size, 1)
	return b
}

// inBlocks leaves out the nodes outside of all blocks if some are in blocks: Slurm uses these only for a job that may have
// no others. Slurm from 26.05 on also gives one to a job of a single node (slurmctl.PlacesOneByWeight). Plans do not: a step
// that grows would have to bring nodes in blocks. So such a stock job may start earlier than planned.
func inBlocks(s *state.Snapshot, nodes []int) []int {
	if s.Switches == nil || s.Switches.Blocks == nil {
		return nodes
	}
	outside := func(n int) bool { return s.Switches.Leaf[n] >= s.Switches.Blocks.Count }
	if inside := slices.DeleteFunc(slices.Clone(nodes), outside); len(inside) > 0 {
		return inside
	}
	return nodes
}

// fabricOf returns what [state.Snapshot] has of each node's fabric.
func fabricOf(c *state.Core, s *state.Snapshot) []int {
	fabrics := c.Topology.Fabrics()
	if len(fabrics) == 0 || c.SlurmConfig.TopologyOptional() {
		return nil
	}
	of := slices.Repeat([]int{-1}, len(s.Nodes))
	for i, names := range fabrics {
		for _, name := range names {
			if n, ok := s.Index[name]; ok {
				of[n] = i
			}
		}
	}
	if len(fabrics) == 1 && !slices.Contains(of, -1) {
		return nil
	}
	return of
}

// onFabrics splits some nodes, or each choice of them, by fabrics, the largest parts first, and leaves out nodes without one. It
// returns all that remain, too.
func onFabrics(s *state.Snapshot, nodes []int, choices [][]int) ([]int, [][]int) {
	if choices == nil {
		choices = [][]int{nodes}
	}
	var all [][]int
	for _, one := range choices {
		parts := map[int][]int{}
		for _, n := range one {
			if f := s.Fabric[n]; f >= 0 {
				parts[f] = append(parts[f], n)
			}
		}
		all = append(all, slices.Collect(maps.Values(parts))...)
	}
	slices.SortFunc(all, func(a, b []int) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b)) })
	all = all[:min(len(all), mostChoices)]
	return union(all), all
}

// FirstPart returns the nodes of a growth that one job can bring: all, or on a site with blocks those of the block that has
// the most of them. The others come after these.
func FirstPart(c *state.Core, s *state.Snapshot, nodes []string) []string {
	if !c.Topology.Blocks {
		return nodes
	}
	all, of := allSwitches(c.Topology, s), map[int][]string{}
	first := -1
	for _, name := range nodes {
		n, known := s.Index[name]
		if !known {
			return nodes
		}
		leaf := all.Leaf[n]
		if of[leaf] = append(of[leaf], name); first < 0 || len(of[leaf]) > len(of[first]) {
			first = leaf
		}
	}
	return of[first]
}
