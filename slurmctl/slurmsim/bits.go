package slurmsim

import "math/bits"

// nodeSet is a set of nodes by index.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

func (s nodeSet) has(n int) bool { return s[n>>6]&(1<<(n&63)) != 0 }
func (s nodeSet) add(n int)      { s[n>>6] |= 1 << (n & 63) }
func (s nodeSet) drop(n int)     { s[n>>6] &^= 1 << (n & 63) }

// span adds the nodes from first to last.
func (s nodeSet) span(first, last int) {
	for i := first >> 6; i <= last>>6; i++ {
		w := ^uint64(0)
		if i == first>>6 {
			w = w >> (first & 63) << (first & 63)
		}
		if i == last>>6 {
			w = w << (63 - last&63) >> (63 - last&63)
		}
		s[i] |= w
	}
}

// fill adds all nodes.
func (s nodeSet) fill() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

func (s nodeSet) addAll(nodes []int) {
	for _, n := range nodes {
		s.add(n)
	}
}

// Cutting the other set to the length of the first, here and below, saves a check in every round.

func (s nodeSet) and(o nodeSet) {
	o = o[:len(s)]
	for i := range s {
		s[i] &= o[i]
	}
}

func (s nodeSet) minus(o nodeSet) {
	o = o[:len(s)]
	for i := range s {
		s[i] &^= o[i]
	}
}

func (s nodeSet) or(o nodeSet) {
	o = o[:len(s)]
	for i := range s {
		s[i] |= o[i]
	}
}

func (s nodeSet) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// common returns how many nodes are in both sets.
func (s nodeSet) common(o nodeSet) int {
	o = o[:len(s)]
	n := 0
	for i, w := range s {
		n += bits.OnesCount64(w & o[i])
	}
	return n
}

func (s nodeSet) overlaps(o nodeSet) bool {
	o = o[:len(s)]
	for i, w := range s {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}

// holds reports whether s contains all of o.
func (s nodeSet) holds(o nodeSet) bool {
	o = o[:len(s)]
	for i, w := range s {
		if o[i]&^w != 0 {
			return false
		}
	}
	return true
}

func (s nodeSet) equal(o nodeSet) bool {
	o = o[:len(s)]
	for i, w := range s {
		if w != o[i] {
			return false
		}
	}
	return true
}

// next returns the first node of the set from n on, or -1.
func (s nodeSet) next(n int) int {
	if n < 0 {
		n = 0
	}
	i := n >> 6
	if i >= len(s) {
		return -1
	}
	w := s[i] >> (n & 63) << (n & 63)
	for w == 0 {
		if i++; i == len(s) {
			return -1
		}
		w = s[i]
	}
	return i<<6 + bits.TrailingZeros64(w)
}

// gap returns the first node from n on that is not in the set.
func (s nodeSet) gap(n int) int {
	i := n >> 6
	w := ^s[i] >> (n & 63) << (n & 63)
	for w == 0 {
		if i++; i == len(s) {
			return i << 6
		}
		w = ^s[i]
	}
	return i<<6 + bits.TrailingZeros64(w)
}

// list returns the set's nodes in order.
func (s nodeSet) list() []int {
	nodes := make([]int, 0, s.count())
	for n := s.next(0); n >= 0; n = s.next(n + 1) {
		nodes = append(nodes, n)
	}
	return nodes
}
