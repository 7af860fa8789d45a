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
	freeing int           // jobs that are completing there; not saved
	shrunk  bool          // an exclusive job was shrunk from it, and counts for good; not saved
}

// nodeTable holds the cluster's nodes.
type nodeTable struct {
	nodes      []node
	rank       []int // a node's position by name
	index      map[string]int
	kinds      []slurmctl.GRES // existing kinds
	uniform    bool            // all nodes have the same CPUs and weight
	up         nodeSet         // neither down nor drained
	completing nodeSet
	resuming   nodeSet // powering up
	refused    nodeSet // idle, but kept from jobs until they answer
	asked      nodeSet // shown as not responding until they answer
	unsaved    bool    // a node has changed since the last save
}

func newNodeTable(list []slurmctl.Node) nodeTable {
	t := nodeTable{nodes: make([]node, len(list)), index: map[string]int{}, up: newNodeSet(len(list)), uniform: true}
	for i, n := range list {
		t.uniform = t.uniform && n.CPUs == list[0].CPUs && n.Weight == list[0].Weight
		t.index[n.Name] = i
		t.nodes[i].Node = n
		t.nodes[i].Partitions = nil
		t.up.add(i)
	}
	t.rank = ranks(t.nodes)
	return t
}

// newPartition creates a partition of some nodes, or of all.
func (t *nodeTable) newPartition(given Partition) *partition {
	p := &partition{Partition: given, set: newNodeSet(len(t.nodes))}
	orElse(&p.MinNodes, 1)
	orElse(&p.OverSubscribe, "NO")
	orElse(&p.Tier, 1)
	if p.Nodes == nil {
		for i := range t.nodes {
			p.Nodes = append(p.Nodes, t.nodes[i].Name)
		}
	}
	for _, name := range p.Nodes {
		i := t.index[name]
		p.set.add(i)
		t.nodes[i].Partitions = append(t.nodes[i].Partitions, p.Name)
	}
	return p
}

// usable puts a node into the sets that match its state. It is called after every change of a node.
func (t *nodeTable) usable(i int) {
	t.unsaved = true
	n := &t.nodes[i]
	if n.down || n.drained || n.leaked || n.power == slurmctl.PowerDown {
		t.up.drop(i)
	} else {
		t.up.add(i)
	}
	if n.power == slurmctl.PowerUp {
		t.resuming.add(i)
	} else {
		t.resuming.drop(i)
	}
}

// switchOn starts to power up nodes that are off.
func (t *nodeTable) switchOn(nodes []int, now time.Duration) {
	for _, i := range nodes {
		if n := &t.nodes[i]; n.power == slurmctl.PoweredDown {
			n.power, n.powered = slurmctl.PowerUp, now
			t.usable(i)
		}
	}
}

// named returns a set of nodes by name, or nil for no names.
func (t *nodeTable) named(names []string) (nodeSet, error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := newNodeSet(len(t.nodes))
	for _, name := range names {
		n, ok := t.index[name]
		if !ok {
			return nil, refusal("Invalid node name specified")
		}
		set.add(n)
	}
	return set, nil
}

// names returns the nodes' names in order.
func (t *nodeTable) names(nodes []int) []string {
	if nodes == nil {
		return nil
	}
	byRank := func(a, b int) int { return t.rank[a] - t.rank[b] }
	if !slices.IsSortedFunc(nodes, byRank) {
		nodes = slices.Clone(nodes)
		slices.SortFunc(nodes, byRank)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = t.nodes[n].Name
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

// hasFeatures reports whether a node has all features of "a" or "a&b", or at least one of "a|b".
func (t *nodeTable) hasFeatures(n int, wanted string) bool {
	for one := range strings.SplitSeq(wanted, "|") {
		all := true
		for f := range strings.SplitSeq(one, "&") {
			all = all && slices.Contains(t.nodes[n].Features, strings.TrimSpace(f))
		}
		if all {
			return true
		}
	}
	return false
}

// Size returns how many nodes the cluster has.
func (t *nodeTable) Size() int { return len(t.nodes) }

// marks maps power states to sinfo's marks.
var marks = map[slurmctl.Power]string{slurmctl.PowerUp: "#", slurmctl.PoweredDown: "~", slurmctl.PowerDown: "%"}
