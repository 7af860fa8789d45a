package slurmsim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// blocks holds the base blocks of topology/block, in the order of topology.conf.
type blocks struct {
	base   []nodeSet
	all    nodeSet
	size   int   // nodes of a base block that count
	levels []int // of how many base blocks each kind of block is made, ascending, from 1
	again  bool  // see slurmctl.SearchesAgain
}

func newBlocks(t slurmctl.Topology, nodes []slurmctl.Node, again bool) *blocks {
	if !t.Blocks || len(t.Switches) == 0 {
		return nil
	}
	b := &blocks{all: newNodeSet(len(nodes)), size: max(t.BlockSize, 1), levels: append([]int{1}, t.Levels...), again: again}
	for _, s := range t.Switches {
		b.base = append(b.base, setOf(s.Nodes, nodes))
		b.all.or(b.base[len(b.base)-1])
	}
	return b
}

// order returns the nodes to take for a job of n nodes beside the required ones, as eval_nodes_block does (24.11): within one
// block that is large enough for a job of its size, and there on no more of the next smaller blocks than its nodes fill. It
// returns false if there are none. O(nodes × base blocks); times the nodes if it searches again.
func (b *blocks) order(nodes []node, from, required nodeSet, n int) ([]int, bool) {
	for from = slices.Clone(from); ; {
		s := blockSearch{blocks: b, nodes: nodes, from: from, required: required, used: make([]bool, len(b.base)), taken: newNodeSet(len(nodes)), left: n}
		found, without := s.search(n)
		if found || !b.again || without == nil || from.count() <= n {
			return s.got, found
		}
		if required != nil {
			without.minus(required)
		}
		least := -1
		for i := without.next(0); i >= 0; i = without.next(i + 1) {
			if least < 0 || nodes[i].CPUs < nodes[least].CPUs {
				least = i
			}
		}
		if least < 0 {
			return nil, false
		}
		from.drop(least)
	}
}

// search finds the nodes for a job of n nodes. If it finds too few, it returns the nodes among which Slurm leaves one out to
// search again, or nil if Slurm gives up.
func (s *blockSearch) search(n int) (found bool, without nodeSet) {
	if s.required != nil {
		s.taken.or(s.required)
		s.left -= s.required.count()
	}
	s.shape(n)
	if s.required != nil && !s.all.holds(s.required) || !s.pick() {
		return false, nil
	}
	if s.markRequired(); s.most < 0 {
		return false, nil
	}
	if s.left > 0 && !s.lightest() {
		return false, slices.Clone(s.from)
	}
	s.besides()
	s.fill()
	return s.left <= 0, slices.Clone(s.taken)
}

// refuses returns why Slurm would not start a job of n nodes even if all nodes of its partition were free, or nil.
func (b *blocks) refuses(nodes []node, partition, required nodeSet, n int) error {
	if b == nil || !b.all.overlaps(partition) {
		return nil
	}
	if required != nil && !b.all.holds(required) && !b.again {
		return refusal("Requested topology configuration is not available")
	}
	if _, ok := b.order(nodes, partition, required, n); !ok {
		return refusal("Requested node configuration is not available")
	}
	return nil
}

// blockSearch is the search for a job's nodes.
type blockSearch struct {
	*blocks
	nodes          []node
	from, required nodeSet

	whole, part, most int  // the job is within `whole` base blocks, on at most `most` smaller blocks of `part` base blocks
	limited           bool // fewer smaller blocks than there are

	first    int     // base block of the chosen block
	in, best nodeSet // its nodes; those of the weights that suffice
	used     []bool  // per base block
	taken    nodeSet
	got      []int
	left     int
}

// shape finds what kind of block the job gets.
func (s *blockSearch) shape(n int) {
	need := 1 << bits.Len(uint((n+s.size-1)/s.size-1))
	s.whole, s.part = len(s.base), 1
	for _, level := range slices.Backward(s.levels) {
		if level >= need {
			s.whole = level
		}
	}
	for _, level := range s.levels {
		if 2*level <= need {
			s.part = level
		}
	}
	s.most = (n + s.part*s.size - 1) / (s.part * s.size)
	s.limited = s.whole != s.part*s.most
}

// pick chooses the block: the one with the required nodes, or of those with enough nodes the one with the lightest node, and
// then with the fewest.
func (s *blockSearch) pick() bool {
	least, fewest := 0, 0
	for first := 0; first < len(s.base); first += s.whole {
		in := newNodeSet(len(s.nodes))
		for i := first; i < s.end(first, s.whole); i++ {
			in.or(s.base[i])
		}
		in.and(s.from)
		if s.required != nil {
			if in.overlaps(s.required) {
				s.first, s.in = first, in
				return in.holds(s.required)
			}
			continue
		}
		if s.room(first, in) < s.left {
			continue
		}
		light, count := s.nodes[s.byWeight(in)[0]].Weight, in.count()
		if s.in == nil || light < least || light == least && count <= fewest {
			s.first, s.in, least, fewest = first, in, light, count
		}
	}
	return s.in != nil
}

// end returns the base block after those of a larger block.
func (s *blockSearch) end(first, size int) int { return min(first+size, len(s.base)) }

// room returns how many of a block's nodes the job could get.
func (s *blockSearch) room(first int, in nodeSet) (room int) {
	if !s.limited {
		return in.count()
	}
	var parts []int
	for i := first; i < s.end(first, s.whole/s.part*s.part); i += s.part { // Slurm forgets an incomplete one at the end
		count := 0
		for k := i; k < s.end(i, s.part); k++ {
			count += s.base[k].common(in)
		}
		parts = append(parts, count)
	}
	slices.SortFunc(parts, func(a, b int) int { return cmp.Compare(b, a) })
	for _, count := range parts[:min(s.most, len(parts))] {
		room += count
	}
	return room
}

// byWeight lists nodes, the lightest first.
func (s *blockSearch) byWeight(set nodeSet) []int {
	list := set.list()
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(s.nodes[a].Weight, s.nodes[b].Weight) })
	return list
}

// markRequired counts the smaller blocks that the job's required nodes are on.
func (s *blockSearch) markRequired() {
	if s.required == nil || !s.limited {
		return
	}
	last := -1
	for i := s.first; i < s.end(s.first, s.whole); i++ {
		if s.base[i].overlaps(s.required) {
			s.used[i] = true
			if last < 0 || last/s.part != i/s.part {
				s.most--
				last = i
			}
		}
	}
}

// lightest finds the nodes of the weights that suffice, and takes those that are lighter than the heaviest of them.
func (s *blockSearch) lightest() bool {
	rest := slices.Clone(s.in)
	rest.minus(s.taken)
	list := s.byWeight(rest)
	if len(list) < s.left {
		return false
	}
	heaviest := s.nodes[list[s.left-1]].Weight
	s.best = newNodeSet(len(s.nodes))
	lighter := newNodeSet(len(s.nodes))
	for _, n := range list {
		if s.nodes[n].Weight <= heaviest {
			s.best.add(n)
		}
		if s.nodes[n].Weight < heaviest {
			lighter.add(n)
		}
	}
	s.take(lighter)
	last := -1
	for i := s.first; i < s.end(s.first, s.whole); i++ {
		switch {
		case s.used[i]:
			last = i
		case s.base[i].overlaps(lighter):
			s.used[i] = true
			if last < 0 || last/s.part != i/s.part {
				s.most--
			}
			last = i
		}
	}
	return s.most >= 0
}

// take takes nodes of a set while the job lacks some.
func (s *blockSearch) take(set nodeSet) {
	for n := set.next(0); n >= 0 && s.left > 0; n = set.next(n + 1) {
		if !s.taken.has(n) {
			s.taken.add(n)
			s.got = append(s.got, n)
			s.left--
		}
	}
}

// on returns the nodes of a base block that the job could get.
func (s *blockSearch) on(i int) nodeSet {
	set := slices.Clone(s.base[i])
	set.and(s.best)
	return set
}

// besides takes nodes of the base blocks that the job has.
func (s *blockSearch) besides() {
	for i := s.first; i < s.end(s.first, s.whole) && s.left > 0; i++ {
		if s.used[i] {
			s.take(s.on(i))
		}
	}
}

// fill takes nodes base block by base block.
func (s *blockSearch) fill() {
	if s.left <= 0 {
		return
	}
	count, onPart := make([]int, len(s.base)), make([]int, len(s.base))
	for i := s.first; i < s.end(s.first, s.whole); i++ {
		if !s.used[i] {
			count[i] = s.on(i).count()
			onPart[i/s.part] += count[i]
		}
	}
	for before := s.left + 1; s.left > 0 && s.left < before; {
		before = s.left
		b := bestBase{at: -1, same: true}
		for i := s.first; i < s.end(s.first, s.whole); i++ {
			if !s.used[i] {
				s.consider(i, count, onPart, &b)
			}
		}
		if b.at < 0 || s.most <= 0 && !b.same {
			return
		}
		s.used[b.at] = true
		s.take(s.on(b.at))
		if !b.same {
			s.most--
		}
	}
}

// bestBase is the best base block so far.
type bestBase struct {
	at   int
	fits bool
	same bool // it is on a smaller block that the job has, or that does not matter
}

// consider takes base block i if it is better (_choose_best_bblock): on a smaller block that the job has, then on the one that
// suffices most tightly or else is the largest; there the base block in the same manner.
func (s *blockSearch) consider(i int, count, onPart []int, b *bestBase) {
	fits := count[i] >= s.left
	if s.limited && (b.at < 0 || b.at/s.part != i/s.part) {
		same, better := s.comparePart(i/s.part, onPart, b)
		if better > 0 {
			*b = bestBase{i, fits, same}
		}
		if better != 0 {
			return
		}
	}
	if b.at < 0 || fits && (!b.fits || count[i] <= count[b.at]) || !fits && !b.fits && count[i] >= count[b.at] {
		b.at, b.fits = i, fits
	}
}

// comparePart returns whether the job has a smaller block, and 1 if that is better than the best so far; 0 if they are alike.
func (s *blockSearch) comparePart(part int, onPart []int, b *bestBase) (same bool, better int) {
	at := part * s.part
	same = slices.Contains(s.used[at:s.end(at, s.part)], true)
	switch {
	case b.at < 0:
		return same, 1
	case same == b.same:
		return same, s.compare(onPart[part], onPart[b.at/s.part])
	case same:
		return same, 1
	}
	return same, -1
}

// compare returns 1 if a smaller block with so many nodes is better than one with so many others, and 0 if they are alike.
func (s *blockSearch) compare(mine, theirs int) int {
	switch {
	case mine >= s.left && theirs >= s.left:
		return cmp.Compare(theirs, mine)
	default:
		return cmp.Compare(mine, theirs)
	}
}
