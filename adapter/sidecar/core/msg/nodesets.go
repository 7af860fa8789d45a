package msg

import (
	"strings"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// SetPlanner is a Planner that may want to know what tells the nodes of the next pool from each other.
type SetPlanner interface {
	Planner
	// Sort passes what groups these nodes. It may be called until the pool is planned.
	Sort(func() []planner.NodeSet)
}

// Kinds groups nodes that are alike in their switches, weights, features, and power states. Only the goroutine that plans
// may use it.
type Kinds struct {
	Nodes    []slurmctl.Node
	Switches *planner.Switches // of these nodes
	Names    []string          // of the switches

	sets []planner.NodeSet // without counts; made on demand
	of   []int             // per node, its set; noSet: none
}

const noSet = -1

// kind tells sets apart.
type kind struct {
	leaf, weight int
	power        slurmctl.Power
	features     string
}

// sort finds the sets. Nodes with too many features are in none.
func (k *Kinds) sort() {
	if k.of != nil {
		return
	}
	k.of = make([]int, len(k.Nodes))
	known := map[kind]int{}
	for i, n := range k.Nodes {
		one := kind{k.Switches.Leaf[i], n.Weight, n.Power(), strings.Join(n.Features, ",")}
		set, seen := known[one]
		if !seen {
			set = noSet
			if above := k.switches(one.leaf); len(above)+len(n.Features) <= planner.MaxSetNames {
				set = len(k.sets)
				k.sets = append(k.sets, planner.NodeSet{Switches: above, Weight: n.Weight, Features: n.Features, Power: planner.Power(one.power)})
			}
			known[one] = set
		}
		k.of[i] = set
	}
}

// switches returns the names of a switch and of those above it.
func (k *Kinds) switches(at int) (names []string) {
	for at >= 0 && at < len(k.Names) && len(names) <= planner.MaxSetNames {
		names = append(names, k.Names[at])
		at = k.Switches.Above[at]
	}
	return names
}

// Among returns what groups some nodes, when it is first asked.
func (k *Kinds) Among(nodes []int, pool *planner.Pool) func() []planner.NodeSet {
	asked, sets := false, []planner.NodeSet(nil)
	return func() []planner.NodeSet {
		if !asked {
			asked, sets = true, k.group(nodes, pool)
		}
		return sets
	}
}

// group groups nodes. Those that the pool has in use now are not free. If there are too many sets, the nodes of the last ones
// are in none.
func (k *Kinds) group(nodes []int, pool *planner.Pool) []planner.NodeSet {
	k.sort()
	used := make([]int64, len(nodes)) // until when; 0: not now
	for _, b := range pool.Busy {
		if b.Start <= 0 && b.End > 0 {
			used[b.Node] = max(used[b.Node], b.End)
		}
	}
	for _, j := range pool.Jobs {
		for _, n := range j.Held {
			used[n] = planner.Forever
		}
	}
	at := make([]int, len(k.sets)) // from 1
	var sets []planner.NodeSet
	for i, n := range nodes {
		set := k.of[n]
		if set == noSet {
			continue
		}
		if at[set] == 0 {
			if len(sets) == planner.MaxNodeSets {
				continue
			}
			sets = append(sets, k.sets[set])
			at[set] = len(sets)
		}
		one := &sets[at[set]-1]
		one.Nodes++
		switch {
		case used[i] == 0:
			one.Free++
		case one.Power != planner.PowerOn && k.Nodes[n].State == "idle" && used[i] < planner.Forever: // used until it is up
			one.Free++
			one.Ready = max(one.Ready, used[i])
		}
	}
	return sets
}
