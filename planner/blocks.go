package planner

import (
	"cmp"
	"math/bits"
	"slices"
)

// Blocks describes topology/block, where the leaves are base blocks, by index. Slurm joins neighbours to larger blocks.
// It starts a job only within one block that is large enough for a job of its size, and there on no more blocks of the
// next smaller kind than its nodes fill. From 26.05 on, Slurm searches again without a node if it finds none, but never among
// fewer nodes than the job needs: so the nodes of a hold count as before.
type Blocks struct {
	Count  int   // of base blocks; nodes on other leaves are outside of all blocks
	Size   int   // nodes of a base block that count
	Levels []int // the kinds of blocks, ascending: of how many base blocks each is made, a power of two; 1 is the first
}

func (b *Blocks) equal(c *Blocks) bool {
	return b == c || b != nil && c != nil && b.Count == c.Count && b.Size == c.Size && slices.Equal(b.Levels, c.Levels)
}

// valid reports whether Slurm could have such blocks.
func (b *Blocks) valid(leaves int) bool {
	return b.Count > 0 && b.Count <= leaves && b.Size > 0 && !slices.ContainsFunc(b.Levels, func(n int) bool { return n < 1 })
}

// shape returns where a job of n nodes starts: within a block made of `whole` base blocks, and there on at most `most` smaller
// blocks, made of `part` base blocks each.
func (b *Blocks) shape(n int) (whole, part, most int) {
	full := (max(n, 1) + b.Size - 1) / b.Size // base blocks
	need := 1 << bits.Len(uint(full-1))
	whole, part = b.Count, 1
	for _, level := range slices.Backward(b.Levels) {
		if level >= need {
			whole = level
		}
	}
	for _, level := range b.Levels {
		if need > 1 && level <= need/2 {
			part = level
		}
	}
	return whole, part, (full + part - 1) / part
}

// accepts reports whether Slurm starts a job on some nodes.
func (s *Switches) accepts(nodes []int) bool {
	b := s.Blocks
	whole, part, most := b.shape(len(nodes))
	first, last := s.Leaf[nodes[0]]/whole*whole, b.last(whole, part, most)
	parts, on := make(map[int]bool), make([]int, max(min(whole, b.Count-first), 0))
	outside, mixed := 0, false
	for _, n := range nodes {
		leaf := s.Leaf[n]
		switch {
		case leaf >= b.Count:
			outside++
			continue
		case leaf < first || leaf >= first+whole || leaf >= last:
			return false
		}
		parts[leaf/part] = true
		on[leaf-first]++
		mixed = mixed || s.Weight != nil && s.Weight[n] != s.Weight[nodes[0]]
	}
	return outside == len(nodes) || outside == 0 && len(parts) <= most && (len(parts) == 1 || whole == part*most || fills(on, part, mixed))
}

// last returns the base block after those that Slurm uses for such a job. If it is larger than the largest block, Slurm forgets a
// smaller block that is not whole (24.11 to 26.05).
func (b *Blocks) last(whole, part, most int) int {
	if whole == b.Count && whole != part*most {
		return whole / part * part
	}
	return b.Count
}

// fills reports whether Slurm takes all these nodes, given how many there are on each base block, and whether their weights
// differ. It takes the smaller block with the most nodes first; of equals, the one with the largest base block, and then the
// last one. If that has a base block without a node, Slurm chooses that one in the end, and gives up (eval_nodes_block.c of
// 24.05 to 26.05). If their weights differ, it may begin with any.
func fills(on []int, part int, mixed bool) bool {
	holes, hole := 0, false // of all, and whether the one that comes last has one
	sum, largest := 0, 0    // of that one
	for within := range slices.Chunk(on, part) {
		count := 0
		for _, n := range within {
			count += n
		}
		if count == 0 {
			continue
		}
		holed := slices.Contains(within, 0)
		if holed {
			holes++
		}
		if most := slices.Max(within); sum == 0 || cmp.Or(cmp.Compare(count, sum), cmp.Compare(most, largest)) < 0 {
			sum, largest, hole = count, most, holed
		}
	}
	return holes == 0 || holes == 1 && hole && !mixed
}

// choice holds leaves, and how many nodes are free on them.
type choice struct {
	leaves []int
	free   int
}

// add joins the first of the choices, at most so many.
func add(parts []choice, most int) (sum choice) {
	for _, one := range cut(parts, most) {
		sum.leaves, sum.free = append(sum.leaves, one.leaves...), sum.free+one.free
	}
	return sum
}

// filled joins choices for n nodes. Only the last one may have a leaf without a free node; see fills.
func filled(parts []choice, most, n int, free []int) choice {
	holed := func(c choice) bool {
		return slices.ContainsFunc(c.leaves, func(leaf int) bool { return free[leaf] == 0 })
	}
	full := slices.DeleteFunc(slices.Clone(parts), holed)
	if at := slices.IndexFunc(parts, holed); at >= 0 && add(full, most).free < n {
		full = append(cut(full, most-1), parts[at])
	}
	return add(full, most)
}

// choices returns sets of leaves on which a job of n nodes could start, each with enough free nodes, the tightest first. It
// gets how many nodes are free per leaf.
func (b *Blocks) choices(n int, free []int) (all [][]int) {
	whole, part, most := b.shape(n)
	var found []choice
	for first := 0; first < b.Count; first += whole {
		end := min(first+whole, b.last(whole, part, most))
		var parts []choice
		for at := first; at < end; at += part {
			one := choice{}
			for leaf := at; leaf < min(at+part, end); leaf++ {
				one.leaves, one.free = append(one.leaves, leaf), one.free+free[leaf]
			}
			parts = append(parts, one)
		}
		slices.SortStableFunc(parts, func(x, y choice) int { return cmp.Compare(y.free, x.free) })
		sum := add(parts, most)
		if sum.free >= n && most > 1 && part > 1 && whole != part*most {
			sum = filled(parts, most, n, free)
		}
		if sum.free >= n {
			found = append(found, sum)
		}
	}
	outside := choice{}
	for leaf := b.Count; leaf < len(free); leaf++ {
		outside.leaves, outside.free = append(outside.leaves, leaf), outside.free+free[leaf]
	}
	if outside.free >= n {
		found = append(found, outside)
	}
	slices.SortStableFunc(found, func(x, y choice) int { return cmp.Compare(x.free, y.free) })
	for _, one := range found {
		all = append(all, one.leaves)
	}
	return all
}

// mostChoices bounds how many of these sets a mapper tries.
const mostChoices = 64

// inBlocks does what choose does for a start, on leaves on which Slurm accepts it. Of equally few leaves, it takes those
// where its growths find room, and then the tightest.
func (n *nearness) inBlocks(open []int64, peak int) (chosen []int, leaves int) {
	free := make([]int, len(n.free))
	for leaf, list := range n.free {
		free[leaf] = len(list)
	}
	roomy := false
	for _, only := range cut(n.Blocks.choices(len(open), free), mostChoices) {
		got, on := n.onBlocks(only, open, peak)
		room := 0
		for _, leaf := range only {
			room += free[leaf]
		}
		if len(got) < len(open) || !n.accepts(got) || chosen != nil && (on > leaves || on == leaves && (roomy || room < peak)) {
			continue
		}
		chosen, leaves, roomy = got, on, room >= peak
	}
	return chosen, leaves
}

// onBlocks does what choose does for a start on some leaves, where Slurm accepts it. If need be, it fills one smaller block after
// the other, as Slurm does.
func (n *nearness) onBlocks(only []int, open []int64, peak int) (chosen []int, leaves int) {
	defer func() { n.only = nil }()
	_, part, _ := n.Blocks.shape(len(open))
	n.only = only
	if chosen, leaves = n.choose(nil, open, peak); len(chosen) < len(open) || n.accepts(chosen) {
		return chosen, leaves
	}
	chosen, leaves = nil, 0
	clear(n.has)
	for len(only) > 0 {
		end := slices.IndexFunc(only, func(leaf int) bool { return leaf/part != only[0]/part })
		if end < 0 {
			end = len(only)
		}
		var got []int
		var on int
		n.only = only[:end]
		got, on, open = n.more(open, peak-len(chosen))
		chosen, leaves, only = append(chosen, got...), leaves+on, only[end:]
	}
	return chosen, leaves
}

func cut[T any](list []T, most int) []T { return list[:min(len(list), most)] }
