package slurmsim

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// node is a node; its jobs record their own shares.
type node struct {
	slurmctl.Node
	gres    []int64 // by kind
	leaked  bool    // allocated to a job that has ended
	down    bool
	drained bool
	power   slurmctl.Power
	powered time.Duration // since when the node has this power state, or its last use
	broken  bool          // fails to power up
	freeing int           // jobs that are completing there
}

// usable puts a node into the sets that match its state.
func (c *Cluster) usable(i int) {
	n := &c.nodes[i]
	if n.down || n.drained || n.leaked || n.power == slurmctl.PowerDown {
		c.up.drop(i)
	} else {
		c.up.add(i)
	}
	if n.power == slurmctl.PowerUp {
		c.resuming.add(i)
	} else {
		c.resuming.drop(i)
	}
}

// switchOn starts to power up nodes that are off.
func (c *Cluster) switchOn(nodes []int) {
	for _, i := range nodes {
		if n := &c.nodes[i]; n.power == slurmctl.PoweredDown {
			n.power, n.powered = slurmctl.PowerUp, c.now
			c.usable(i)
		}
	}
}

// named returns a set of nodes by name, or nil for no names.
func (c *Cluster) named(names []string) (nodeSet, error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := newNodeSet(len(c.nodes))
	for _, name := range names {
		n, ok := c.index[name]
		if !ok {
			return nil, refusal("Invalid node name specified")
		}
		set.add(n)
	}
	return set, nil
}

// names returns the nodes' names in order.
func (c *Cluster) names(nodes []int) []string {
	if nodes == nil {
		return nil
	}
	byRank := func(a, b int) int { return c.rank[a] - c.rank[b] }
	if !slices.IsSortedFunc(nodes, byRank) {
		nodes = slices.Clone(nodes)
		slices.SortFunc(nodes, byRank)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = c.nodes[n].Name
	}
	return names
}

// ranks returns the nodes' positions in the order of their names.
func ranks(nodes []node) []int {
	names, ranks, at := make([]string, len(nodes)), make([]int, len(nodes)), make(map[string]int, len(nodes))
	for i, n := range nodes {
		names[i], at[n.Name] = n.Name, i
	}
	slurmctl.SortNodes(names)
	for k, name := range names {
		ranks[at[name]] = k
	}
	return ranks
}

// features reports whether a node has all features of "a" or "a&b", or at least one of "a|b".
func (c *Cluster) features(n int, wanted string) bool {
	for one := range strings.SplitSeq(wanted, "|") {
		all := true
		for f := range strings.SplitSeq(one, "&") {
			all = all && slices.Contains(c.nodes[n].Features, strings.TrimSpace(f))
		}
		if all {
			return true
		}
	}
	return false
}

// Size returns how many nodes the cluster has.
func (c *Cluster) Size() int { return len(c.nodes) }

// marks maps power states to sinfo's marks.
var marks = map[slurmctl.Power]string{slurmctl.PowerUp: "#", slurmctl.PoweredDown: "~", slurmctl.PowerDown: "%"}
