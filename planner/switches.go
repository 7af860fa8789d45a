package planner

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// Switches holds where the nodes of a pool are in the network, and which of them to spare.
type Switches struct {
	Leaf   []int // per node, the switch that it hangs on, an index into Above
	Above  []int // per switch, the one above it; -1: none
	Weight []int // per node; lower ones are taken first; nil: all are equal
	Blocks *Blocks
}

// equal reports whether both place the nodes in the same way.
func (s *Switches) equal(t *Switches) bool {
	return s == t || s != nil && t != nil && slices.Equal(s.Leaf, t.Leaf) && slices.Equal(s.Above, t.Above) && slices.Equal(s.Weight, t.Weight) && s.Blocks.equal(t.Blocks)
}

// valid reports whether all indices are within bounds.
func (s *Switches) valid(nodes int) bool {
	within := func(n int) bool { return n >= 0 && n < len(s.Above) }
	return len(s.Leaf) == nodes && (s.Blocks == nil || s.Blocks.valid(len(s.Above))) && (s.Weight == nil || len(s.Weight) == nodes) &&
		!slices.ContainsFunc(s.Leaf, func(n int) bool { return !within(n) }) &&
		!slices.ContainsFunc(s.Above, func(n int) bool { return n != -1 && !within(n) })
}

// nearTries bounds how often nearby maps a plan.
const nearTries = 6

// nearby chooses the nodes of a plan again: a job starts and grows on the fewest leaf switches. When it does, and all
// else, stays as planned. If not all jobs find nodes in this way, only those that need nodes sooner get such nodes.
func (p Pool) nearby(planned []Planned) {
	if p.Switches == nil || !p.Switches.valid(p.Nodes) {
		return
	}
	reserved := p.windowsRun() // its busy nodes include the reserved ones
	r, err := Pool{Nodes: p.Nodes, Busy: reserved.busy, Jobs: p.Jobs, Licenses: p.Licenses}.start(nil)
	if err != nil {
		return
	}
	now, n := r.now(), newNearness(p.Switches)
	for range nearTries {
		index, jobs, busy := r.mapping(planned)
		n.allowed = func(e boundary, node int) bool {
			return reserved.open(index[e.job], planned[index[e.job]].Start, e.at, e.step, node, e.step > 0)
		}
		nodes, err := mapNodes(p.Nodes, busy, jobs, n)
		clash, isClash := errors.AsType[*MapError](err)
		switch {
		case err == nil && !reserved.newlyShut(planned, index, nodes):
			for i, j := range index {
				planned[j].Nodes = nodes[i]
			}
			return
		case isClash && clash.Node >= 0 && r.holder[clash.Node] == index[clash.Job] && clash.Start > clash.At:
			r.overrun(clash)
		case isClash:
			n.until = now + max(min(n.until, clash.At)-now, 0)/2
		default:
			return
		}
	}
}

// open reports whether a job's limit lets it use a node from second at on, in a step.
func (r *reservedRun) open(j int, start, at int64, step, node int, brings bool) bool {
	if len(r.on[node]) == 0 {
		return true
	}
	free := r.pool.Jobs[j].freeUntil(start, at, step, brings)
	return !slices.ContainsFunc(r.on[node], func(w int) bool { return r.windows[w].start < free && r.windows[w].end > at })
}

// newlyShut reports whether a job would have a node that is not open to it, and that it does not have as planned.
func (r *reservedRun) newlyShut(planned []Planned, index []int, nodes [][][]int) bool {
	if len(r.windows) == 0 {
		return false
	}
	for i, j := range index {
		p := planned[j]
		at, before := p.Start, p.Nodes
		p.Nodes = nodes[i]
		for k, step := range p.Steps {
			for _, n := range p.Nodes[k] {
				if _, had := slices.BinarySearch(before[k], n); !had && !r.open(j, p.Start, at, k, n, p.brings(k, n)) {
					return true
				}
			}
			at += step.Duration
		}
	}
	return false
}

// freeUntil returns until when a node must not be reserved by others if the job has it in a step from second at on.
func (job PoolJob) freeUntil(start, at int64, step int, brings bool) int64 {
	if len(job.Limits) == 0 {
		return at
	}
	until := exact.AddTime(start, job.Limits[0])
	if len(job.Limits) > 1 {
		until = exact.AddTime(at, job.Limits[min(step, len(job.Limits)-1)])
	}
	if brings {
		until = max(until, exact.AddTime(at, job.Bring))
	}
	return until
}

// nearness has a mapper choose nodes on few leaf switches.
type nearness struct {
	*Switches
	until   int64 // later boundaries ignore the switches
	allowed func(e boundary, n int) bool

	// Scratch of one boundary.
	free [][]candidate // per leaf, those that may be taken, the best first
	most []int         // per leaf, an upper bound of how many of them are of use
	has  []bool        // per switch, whether the job has nodes below it
	only []int         // leaves that may be used; nil: all
}

func newNearness(s *Switches) *nearness {
	return &nearness{Switches: s, until: Forever, free: make([][]candidate, len(s.Above)), most: make([]int, len(s.Above)), has: make([]bool, len(s.Above))}
}

// nearest chooses free nodes, one for each release (descending): for a start, of the least weights; then on the leaves that
// the job has, then on the fewest others, then where the fewest nodes stay free that the job will not need at its peak. If the nodes that the job
// prefers are on as few leaves, it takes these. It returns false if it finds too few.
func (m *mapper) nearest(e boundary, open []int64) bool {
	n := m.near
	if n == nil || e.at > n.until {
		return false
	}
	peak := 0
	for _, step := range m.jobs[e.job].Steps[e.step:] {
		peak = max(peak, step.Nodes-len(m.held[e.job]))
	}
	m.spread(e, open)
	choose := n.choose
	if n.Blocks != nil && len(m.held[e.job]) == 0 {
		choose = func(_ []int, open []int64, peak int) ([]int, int) { return n.inBlocks(open, peak) }
	}
	held := m.held[e.job]
	light, open := n.lightest(held, open)
	held = append(held[:len(held):len(held)], light...)
	chosen, leaves := choose(held, open, peak-len(light))
	if len(chosen) < len(open) {
		return false
	}
	if len(m.wish(e)) > 0 {
		for leaf, list := range n.free {
			n.free[leaf] = slices.DeleteFunc(list, func(c candidate) bool { return c.rank > 0 })
		}
		if kept, on := choose(held, open, peak-len(light)); len(kept) == len(open) && on <= leaves {
			chosen = kept
		}
	}
	m.chosen = append(append(m.chosen[:0], light...), chosen...)
	return true
}

// lightest has a start use nodes of the least weights, as Slurm does before it looks at switches: it takes those that are
// lighter than the heaviest one needed, and leaves those as heavy as it for the other releases. It returns the nodes taken, and
// these releases. A growth keeps to the job's switches instead, and jobs on blocks to blocks. O(n log n).
func (n *nearness) lightest(held []int, open []int64) (taken []int, rest []int64) {
	if n.Weight == nil || n.Blocks != nil || len(held) > 0 {
		return nil, open
	}
	all := slices.Concat(n.free...)
	slices.SortFunc(all, n.order)
	weight := func(c candidate) int { return n.Weight[c.node] }
	upTo := func(most int) []candidate {
		at, _ := slices.BinarySearchFunc(all, most, func(c candidate, most int) int { return cmp.Compare(weight(c), most+1) })
		return all[:at]
	}
	at, _ := slices.BinarySearchFunc(all, 0, func(c candidate, _ int) int {
		if _, short := serve(upTo(weight(c)), open); len(short) > 0 {
			return -1
		}
		return 1
	})
	if at == len(all) {
		return nil, open // too few
	}
	most := weight(all[at])
	taken, rest = serve(upTo(most-1), open)
	for leaf, list := range n.free {
		n.free[leaf] = slices.DeleteFunc(list, func(c candidate) bool { return weight(c) != most })
	}
	return taken, rest
}

// wish returns which nodes a job prefers in a step.
func (m *mapper) wish(e boundary) []int {
	if was := m.jobs[e.job].Was; len(was) == len(m.jobs[e.job].Steps) {
		return was[e.step]
	}
	return m.prefer[e.job]
}

// spread sorts what a job may take by leaves.
func (m *mapper) spread(e boundary, open []int64) {
	n, from, wish := m.near, open[len(open)-1], m.wish(e)
	if m.driver[e.job] == Lowest {
		from = open[0] // any may become the driver, which stays to the end
	}
	for leaf := range n.free {
		n.free[leaf] = n.free[leaf][:0]
	}
	for w, word := range m.nodes.awake {
		for ; word != 0; word &= word - 1 {
			node := w*64 + bits.TrailingZeros64(word)
			if m.nodes.until[node] < from || !n.allowed(e, node) {
				continue
			}
			c := candidate{node, m.nodes.until[node], 1}
			if _, found := slices.BinarySearch(wish, node); found {
				c.rank = 0
			}
			n.free[n.Leaf[node]] = append(n.free[n.Leaf[node]], c)
		}
	}
	for _, list := range n.free {
		slices.SortFunc(list, n.order)
	}
}

// choose takes as many of the free nodes as there are releases, if possible, and returns on how many leaves they are
// that the job does not have. The job will need `peak` more nodes.
func (n *nearness) choose(held []int, open []int64, peak int) (chosen []int, leaves int) {
	clear(n.has)
	for _, node := range held {
		n.enter(n.Leaf[node])
	}
	chosen, leaves, _ = n.more(open, peak)
	return chosen, leaves
}

// more does what choose does, for a job that may have nodes already. It also returns the releases without a node.
func (n *nearness) more(open []int64, peak int) (chosen []int, leaves int, rest []int64) {
	for leaf, list := range n.free {
		if n.most[leaf] = len(list); n.only != nil {
			n.most[leaf] = 0
		}
	}
	for _, leaf := range n.only {
		n.most[leaf] = len(n.free[leaf])
	}
	for len(open) > 0 {
		leaf := n.best(open, peak-len(chosen))
		if leaf < 0 {
			break
		}
		if !n.has[leaf] {
			leaves++
		}
		var got []int
		got, open = serve(n.free[leaf], open)
		chosen = append(chosen, got...)
		n.most[leaf] = 0
		n.enter(leaf)
	}
	return chosen, leaves, open
}

// order compares two nodes of a leaf.
func (n *nearness) order(a, b candidate) int {
	if n.Weight != nil && n.Weight[a.node] != n.Weight[b.node] {
		return cmp.Compare(n.Weight[a.node], n.Weight[b.node])
	}
	return cmp.Or(cmp.Compare(a.window, b.window), a.order(b))
}

// enter notes that the job has nodes on a leaf.
func (n *nearness) enter(leaf int) {
	for hops := 0; leaf >= 0 && !n.has[leaf] && hops < len(n.Above); hops++ {
		n.has[leaf] = true
		leaf = n.Above[leaf]
	}
}

// best returns the leaf to take nodes from for some releases, of a job that will need `peak` more nodes; -1 if no leaf
// is of use.
func (n *nearness) best(open []int64, peak int) int {
	for {
		best := -1
		for leaf, most := range n.most {
			if most > 0 && (best < 0 || n.better(leaf, best, len(open), peak)) {
				best = leaf
			}
		}
		if best < 0 {
			return -1
		}
		got, _ := serve(n.free[best], open)
		if len(got) == min(n.most[best], len(open)) {
			return best
		}
		n.most[best] = len(got)
	}
}

// better reports whether to take nodes from leaf a rather than b, which is before it.
func (n *nearness) better(a, b, want, peak int) bool {
	if n.has[a] != n.has[b] {
		return n.has[a]
	}
	free, other := len(n.free[a]), len(n.free[b])
	fits, otherFits := n.most[a] >= want, n.most[b] >= want
	switch {
	case fits != otherFits:
		return fits
	case !fits && n.most[a] != n.most[b]:
		return n.most[a] > n.most[b]
	case fits && free != other && (free < peak || other < peak):
		return free > other
	case fits && free != other:
		return free < other
	}
	return n.hops(a) < n.hops(b)
}

// hops counts the switches from a leaf up to one below which the job has nodes.
func (n *nearness) hops(leaf int) (hops int) {
	for leaf >= 0 && !n.has[leaf] && hops < len(n.Above) {
		leaf = n.Above[leaf]
		hops++
	}
	return hops
}

// serve gives each release (descending) the first node that lasts until then. It returns these nodes, and the releases
// without one: the fewest that are possible.
func serve(list []candidate, open []int64) (nodes []int, rest []int64) {
	taken, i := make([]bool, len(list)), 0
	for k, until := range open {
		if k > 0 && until != open[k-1] {
			i = 0
		}
		for i < len(list) && (taken[i] || list[i].window < until) {
			i++
		}
		if i == len(list) {
			rest = append(rest, until)
			continue
		}
		taken[i] = true
		nodes = append(nodes, list[i].node)
	}
	return nodes, rest
}

// leaveSwitches sorts the nodes in brief, which a job may free: among those with equal windows, first those on leaves
// where it has the fewest nodes.
func (m *mapper) leaveSwitches(job int) {
	count := make(map[int]int)
	for _, c := range m.brief {
		count[m.near.Leaf[c.node]]++
	}
	slices.SortStableFunc(m.brief, func(a, b candidate) int {
		x, y := m.near.Leaf[a.node], m.near.Leaf[b.node]
		return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(min(b.rank, 0), min(a.rank, 0)), cmp.Compare(count[x], count[y]), cmp.Compare(x, y), cmp.Compare(b.node, a.node))
	})
}
