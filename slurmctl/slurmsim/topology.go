package slurmsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// network holds the switches of topology/tree, in the order of topology.conf.
type network struct {
	below []nodeSet // nodes below each switch
	above []int     // the switch above each, itself at the top
	level []int     // 0: a leaf
	hops  [][]int   // between two switches; unreachable if they have no common one
}

const unreachable = 1 << 20

func newNetwork(t slurmctl.Topology, nodes []slurmctl.Node) *network {
	if len(t.Switches) == 0 || t.Blocks {
		return nil
	}
	n := &network{}
	for i, s := range t.Switches {
		n.below, n.level, n.above = append(n.below, setOf(s.Nodes, nodes)), append(n.level, 0), append(n.above, i)
		if s.Above >= 0 {
			n.above[i] = s.Above
		}
	}
	for i := range n.above {
		for at, level := i, 1; n.above[at] != at; level++ {
			at = n.above[at]
			n.below[at].or(n.below[i])
			n.level[at] = max(n.level[at], level)
		}
	}
	for i := range n.above {
		n.hops = append(n.hops, make([]int, len(n.above)))
		for k := range n.above {
			n.hops[i][k] = n.between(i, k)
		}
	}
	return n
}

// setOf returns the named nodes.
func setOf(names []string, nodes []slurmctl.Node) nodeSet {
	set := newNodeSet(len(nodes))
	for _, name := range names {
		if k := slices.IndexFunc(nodes, func(node slurmctl.Node) bool { return node.Name == name }); k >= 0 {
			set.add(k)
		}
	}
	return set
}

func (n *network) between(i, k int) (hops int) {
	for ; i != k; hops++ {
		switch {
		case n.level[i] <= n.level[k] && n.above[i] != i:
			i = n.above[i]
		case n.above[k] != k:
			k = n.above[k]
		default:
			return unreachable
		}
	}
	return hops
}

// order returns the nodes to take for a job that needs `want` more than the required ones, as _eval_nodes_topo of
// cons_tres does (job_test.c of 22.05): below one top switch, of the least weights, on the leaves that the job has, and then
// leaf after leaf, the closest and best one first. It returns nil if there are too few.
func (n *network) order(nodes []node, from, required nodeSet, want int) []int {
	top := n.top(nodes, from, required, want)
	if top < 0 || required != nil && !n.below[top].holds(required) {
		return nil
	}
	rest := slices.Clone(from)
	rest.and(n.below[top])
	if required != nil {
		rest.minus(required)
	}
	list := rest.list()
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(nodes[a].Weight, nodes[b].Weight) })
	if len(list) < want || want == 0 {
		return nil
	}
	first, last := 0, want // of the heaviest nodes that are needed
	for first < want && nodes[list[first]].Weight < nodes[list[want-1]].Weight {
		first++
	}
	for last < len(list) && nodes[list[last]].Weight == nodes[list[want-1]].Weight {
		last++
	}
	have, pool := newNodeSet(len(nodes)), newNodeSet(len(nodes))
	if required != nil {
		have.or(required)
	}
	have.addAll(list[:first])
	pool.addAll(list[:last])
	pool.or(have)
	return n.leafByLeaf(list[:first:first], have, pool, want)
}

// refuses returns why Slurm would not start a job of some nodes even if all nodes of its partition were free, or nil.
func (n *network) refuses(nodes []node, partition, required nodeSet, want int) error {
	if n == nil {
		return nil
	}
	if required != nil {
		want -= required.count()
	}
	if top := n.top(nodes, partition, required, want); top < 0 || required != nil && !n.below[top].holds(required) || n.below[top].common(partition) < want {
		return refusal("Requested node configuration is not available")
	}
	return nil
}

// scatters reports whether a job still waits for nodes on few leaf switches, if it could have these. From then on, its time to
// wait runs (_eval_nodes_topo).
func (n *network) scatters(j *job, nodes nodeSet, now time.Time) bool {
	leaves := 0
	for i, below := range n.below {
		if n.level[i] == 0 && below.overlaps(nodes) {
			leaves++
		}
	}
	if j.Request.Switches == 0 {
		return false
	}
	if j.Scattered.IsZero() {
		j.Scattered = now
	}
	return leaves > j.Request.Switches && now.Sub(j.Scattered) < j.Request.SwitchWait
}

// top returns the switch below which a job gets its nodes, or -1.
func (n *network) top(nodes []node, from, required nodeSet, want int) int {
	top, least := -1, 0
	for i, below := range n.below {
		if required != nil {
			if below.overlaps(required) && (top < 0 || n.level[i] > n.level[top]) {
				top = i
			}
			continue
		}
		if below.common(from) < want {
			continue
		}
		lightest := -1
		for k := below.next(0); k >= 0; k = below.next(k + 1) {
			if from.has(k) && (lightest < 0 || nodes[k].Weight < lightest) {
				lightest = nodes[k].Weight
			}
		}
		if lightest >= 0 && (top < 0 || n.level[i] >= n.level[top] && lightest <= least) {
			top, least = i, lightest
		}
	}
	return top
}

// leafByLeaf appends nodes of the pool to the taken ones until there are enough. The job has nodes already.
func (n *network) leafByLeaf(taken []int, have, pool nodeSet, want int) []int {
	count, far, visited := make([]int, len(n.below)), make([]int, len(n.below)), make([]bool, len(n.below))
	enter := func(i int) {
		visited[i] = true
		for k := range far {
			far[k] = min(far[k]+n.hops[i][k], unreachable)
		}
	}
	take := func(i int) {
		for k := n.below[i].next(0); k >= 0 && len(taken) < want; k = n.below[i].next(k + 1) {
			if pool.has(k) && !have.has(k) {
				have.add(k)
				taken = append(taken, k)
			}
		}
	}
	for i, below := range n.below {
		if count[i] = below.common(pool); below.overlaps(have) {
			visited[i] = true
		}
	}
	for i := range n.below {
		if visited[i] && n.level[i] == 0 {
			take(i)
		}
	}
	for i := range n.below {
		if visited[i] {
			enter(i)
		}
	}
	for len(taken) < want {
		best := n.closest(count, far, visited, want-len(taken))
		if best < 0 {
			return nil
		}
		enter(best)
		take(best)
		count[best] = 0
	}
	return taken
}

// closest returns the leaf to take next for a job that lacks some nodes, or -1 (_topo_choose_best_switch).
func (n *network) closest(count, far []int, visited []bool, want int) int {
	best := -1
	for i := range n.below {
		if n.level[i] > 0 || visited[i] || count[i] == 0 || far[i] >= unreachable {
			continue
		}
		if best < 0 {
			best = i
		} else if fit := n.compare(count, i, best, want); far[i] < far[best] && fit >= 0 || far[i] == far[best] && fit > 0 {
			best = i
		}
	}
	return best
}

// compare returns 1 if switch i suits a job that lacks some nodes better than switch k (_topo_compare_switches).
func (n *network) compare(count []int, i, k, want int) int {
	for {
		fits, other := count[i] >= want, count[k] >= want
		switch {
		case fits && other && count[i] != count[k]:
			return cmp.Compare(count[k], count[i])
		case fits != other && fits:
			return 1
		case fits != other:
			return -1
		}
		if fits || n.above[i] == n.above[k] || n.above[i] == i && n.above[k] == k {
			return cmp.Or(cmp.Compare(count[i], count[k]), cmp.Compare(n.level[k], n.level[i]))
		}
		i, k = n.above[i], n.above[k]
	}
}
