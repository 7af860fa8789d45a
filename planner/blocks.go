package planner

import (
	"cmp"
	"math/bits"
	"slices"
)

// Blocks describes topology/block, where the leaves are base blocks, by index. Slurm joins neighbours to larger blocks.
// It starts a job only within one block that is large enough for a job of its size, and there on no more blocks of the
// next smaller kind than its nodes fill.
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

// accepts reports whether Slurm starts a job on nodes of these leaves, one for each node.
func (b *Blocks) accepts(leaves []int) bool {
	whole, part, most := b.shape(len(leaves))
	parts, outside := make(map[int]bool), 0
	for _, leaf := range leaves {
		if leaf >= b.Count {
			outside++
			continue
		}
		if leaf/whole != leaves[0]/whole {
			return false
		}
		parts[leaf/part] = true
	}
	return outside == len(leaves) || outside == 0 && len(parts) <= most
}

// choices returns sets of leaves on which a job of n nodes could start, each with enough free nodes, the tightest first. It
// gets how many nodes are free per leaf.
func (b *Blocks) choices(n int, free []int) (all [][]int) {
	whole, part, most := b.shape(n)
	type choice struct {
		leaves []int
		free   int
	}
	var found []choice
	for first := 0; first < b.Count; first += whole {
		end := min(first+whole, b.Count)
		var parts []choice
		for at := first; at < end; at += part {
			one := choice{}
			for leaf := at; leaf < min(at+part, end); leaf++ {
				one.leaves, one.free = append(one.leaves, leaf), one.free+free[leaf]
			}
			parts = append(parts, one)
		}
		slices.SortStableFunc(parts, func(x, y choice) int { return cmp.Compare(y.free, x.free) })
		sum := choice{}
		for _, one := range parts[:min(most, len(parts))] {
			sum.leaves, sum.free = append(sum.leaves, one.leaves...), sum.free+one.free
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
		n.only = only
		got, on := n.choose(nil, open, peak)
		n.only = nil
		room := 0
		for _, leaf := range only {
			room += free[leaf]
		}
		if len(got) < len(open) || chosen != nil && (on > leaves || on == leaves && (roomy || room < peak)) {
			continue
		}
		chosen, leaves, roomy = got, on, room >= peak
	}
	return chosen, leaves
}

func cut[T any](list []T, most int) []T { return list[:min(len(list), most)] }
