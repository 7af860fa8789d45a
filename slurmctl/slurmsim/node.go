package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// node is a node; its jobs record their own shares.
type node struct {
	slurmctl.Node
	PerKind    []int64 // by kind
	Leaked     bool    // allocated to a job that has ended
	Down       bool
	Drained    bool
	Reboots    bool // when its jobs have ended, until it is resumed (scontrol reboot ASAP nextstate=resume)
	Gone       bool // deleted (scontrol delete nodename=, of a dynamic node)
	PowerState slurmctl.Power
	Powered    time.Duration // since when the node has this power state, or its last use
	Broken     bool          // fails to power up
	Freeing    int           // jobs that are completing there; not saved
	Shrunk     bool          // an exclusive job was shrunk from it, and counts for good; not saved
}

// nodeTable holds the cluster's nodes.
type nodeTable struct {
	Nodes      []node
	rank       []int           `codec:"-"` // a node's position by name
	index      map[string]int  `codec:"-"`
	kinds      []slurmctl.GRES `codec:"-"` // existing kinds
	uniform    bool            `codec:"-"` // all nodes have the same CPUs and weight
	anywhere   bool            `codec:"-"` // a job of one node gets any (slurmctl.PlacesOneByWeight)
	network    *network        `codec:"-"` // nil: no topology/tree
	blocks     *blocks         `codec:"-"` // nil: no topology/block
	Up         nodeSet         // neither down nor drained
	Completing nodeSet
	Resuming   nodeSet // powering up
	Refused    nodeSet // idle, but kept from jobs until they answer
	Asked      nodeSet // shown as not responding until they answer
	Unsaved    bool    // a node has changed since the last save
}

func newNodeTable(list []slurmctl.Node) nodeTable {
	t := nodeTable{Nodes: make([]node, len(list)), index: map[string]int{}, Up: newNodeSet(len(list)), uniform: true}
	for i, n := range list {
		t.uniform = t.uniform && n.CPUs == list[0].CPUs && n.Weight == list[0].Weight
		t.index[n.Name] = i
		t.Nodes[i].Node = n
		t.Nodes[i].Partitions = nil
		t.Up.add(i)
	}
	t.rank = ranks(t.Nodes)
	return t
}

// newPartition creates a partition of some nodes, or of all.
func (t *nodeTable) newPartition(given Partition) *partition {
	p := &partition{Partition: given, Set: newNodeSet(len(t.Nodes))}
	orElse(&p.MinNodes, 1)
	orElse(&p.OverSubscribe, "NO")
	orElse(&p.Tier, 1)
	if p.Nodes == nil {
		for i := range t.Nodes {
			p.Nodes = append(p.Nodes, t.Nodes[i].Name)
		}
	}
	for _, name := range p.Nodes {
		i := t.index[name]
		p.Set.add(i)
		t.Nodes[i].Partitions = append(t.Nodes[i].Partitions, p.Name)
	}
	return p
}

// usable puts a node into the sets that match its state. It is called after every change of a node.
func (t *nodeTable) usable(i int) {
	t.Unsaved = true
	n := &t.Nodes[i]
	if n.Down || n.Drained || n.Gone || n.Leaked || n.PowerState == slurmctl.PowerDown || n.PowerState == slurmctl.PowerDrain {
		t.Up.drop(i)
	} else {
		t.Up.add(i)
	}
	if n.PowerState == slurmctl.PowerUp {
		t.Resuming.add(i)
	} else {
		t.Resuming.drop(i)
	}
}

// switchOn starts to power up nodes that are off.
func (t *nodeTable) switchOn(nodes []int, now time.Duration) {
	for _, i := range nodes {
		if n := &t.Nodes[i]; n.PowerState == slurmctl.PoweredDown {
			n.PowerState, n.Powered = slurmctl.PowerUp, now
			t.usable(i)
		}
	}
}

// named returns a set of nodes by name, or nil for no names.
func (t *nodeTable) named(names []string) (nodeSet, error) {
	if len(names) == 0 {
		return nil, nil
	}
	set := newNodeSet(len(t.Nodes))
	for _, name := range names {
		n, ok := t.index[name]
		if !ok || t.Nodes[n].Gone {
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
		names[i] = t.Nodes[n].Name
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

// keepFeature keeps those nodes that have a feature.
func (t *nodeTable) keepFeature(nodes nodeSet, feature string) {
	for n := nodes.next(0); n >= 0; n = nodes.next(n + 1) {
		if !slices.Contains(t.Nodes[n].Features, feature) {
			nodes.drop(n)
		}
	}
}

// Size returns how many nodes the cluster has.
func (t *nodeTable) Size() int { return len(t.Nodes) }

// marks maps power states to sinfo's marks.
var marks = map[slurmctl.Power]string{slurmctl.PowerUp: "#", slurmctl.PoweredDown: "~", slurmctl.PowerDown: "%", slurmctl.PowerDrain: "!"}
