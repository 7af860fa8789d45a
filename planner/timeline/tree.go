package timeline

import (
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// The B+ tree behind Timeline.

func (t *Timeline) empty() bool { return len(t.leaves) == 0 }

// init makes the first leaf: nothing in use, ever.
func (t *Timeline) init() {
	t.leaves = append(t.leaves[:0], leaf{n: 1})
	t.leaves[0].start[0] = exact.Dawn
	t.root, t.height, t.changes, t.here = 0, 0, 1, spot{}
}

// index returns the segment at second s, the first where s is before all.
func (l *leaf) index(s int64) int {
	low, high := 0, l.n // start[low] ≤ s < start[high]
	for high-low > 1 {
		if mid := int(uint(low+high) / 2); l.start[mid&(leafSize-1)] <= s {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// index returns the child at second s, the first where s is before all.
func (in *inner) index(s int64) int {
	low, high := 0, in.n
	for high-low > 1 {
		if mid := int(uint(low+high) / 2); in.start[mid&(innerSize-1)] <= s {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// end returns where child i ends, if the node itself ends at end.
func (in *inner) end(i int, end int64) int64 {
	if i+1 < in.n {
		return in.start[i+1]
	}
	return end
}

// find makes t.here the leaf at second s.
func (t *Timeline) find(s int64) {
	if t.here.start <= s && s < t.here.end {
		return
	}
	at := spot{leaf: t.root, start: exact.Dawn, end: exact.Forever}
	for h := t.height; h > 0; h-- {
		in := &t.inners[at.leaf]
		i := in.index(s)
		if i > 0 {
			at.start = in.start[i]
		}
		at.end = in.end(i, at.end)
		at.heldBack += in.heldBack[i]
		at.leaf = in.child[i]
	}
	t.here = at
}

// most returns the maximum over [t0, t1), not empty.
func (t *Timeline) most(t0, t1 int64) int64 {
	t.find(t0)
	if t.here.end >= t1 {
		l := &t.leaves[t.here.leaf]
		return l.most(t0, t1) + t.here.heldBack
	}
	return t.mostIn(t.root, t.height, t0, t1)
}

func (l *leaf) most(t0, t1 int64) int64 {
	i := l.index(t0)
	most := l.nodes[i]
	for i++; i < l.n && l.start[i] < t1; i++ {
		most = max(most, l.nodes[i])
	}
	return most
}

func (t *Timeline) mostIn(node int32, h int, t0, t1 int64) int64 {
	if h == 0 {
		return t.leaves[node].most(t0, t1)
	}
	in := &t.inners[node]
	most := int64(math.MinInt64)
	for i := in.index(t0); i < in.n && (in.start[i] < t1 || i == 0); i++ {
		switch {
		case in.most[i] <= most:
		case in.start[i] >= t0 && i+1 < in.n && in.start[i+1] <= t1:
			most = in.most[i]
		default:
			most = max(most, t.mostIn(in.child[i], h-1, t0, t1)+in.heldBack[i])
		}
	}
	return most
}

// firstBelow returns the first second ≥ from with at most limit nodes in use, within a node that
// ends at end.
func (t *Timeline) firstBelow(node int32, h int, from, end, limit int64) int64 {
	if h == 0 {
		l := &t.leaves[node]
		for i := l.index(from); i < l.n; i++ {
			if l.nodes[i] <= limit {
				return max(l.start[i], from)
			}
		}
		return exact.Forever
	}
	in := &t.inners[node]
	for i := in.index(from); i < in.n; i++ {
		if in.least[i] <= limit {
			if s := t.firstBelow(in.child[i], h-1, from, in.end(i, end), limit-in.heldBack[i]); s != exact.Forever {
				return s
			}
		}
	}
	return exact.Forever
}

// firstOver returns the first second in [t0, t1) with more than limit nodes in use.
func (t *Timeline) firstOver(node int32, h int, t0, t1, end, limit int64) int64 {
	if h == 0 {
		l := &t.leaves[node]
		for i := l.index(t0); i < l.n && (l.start[i] < t1 || i == 0); i++ {
			if l.nodes[i] > limit {
				return max(l.start[i], t0)
			}
		}
		return exact.Forever
	}
	in := &t.inners[node]
	for i := in.index(t0); i < in.n && (in.start[i] < t1 || i == 0); i++ {
		if in.most[i] > limit {
			if s := t.firstOver(in.child[i], h-1, t0, t1, in.end(i, end), limit-in.heldBack[i]); s != exact.Forever {
				return s
			}
		}
	}
	return exact.Forever
}

// lastOver returns the end of the last stretch in [t0, t1) with more than limit nodes
// in use, at most t1; t0 if there is none.
func (t *Timeline) lastOver(node int32, h int, t0, t1, end, limit int64) int64 {
	if h == 0 {
		l := &t.leaves[node]
		for i := l.index(t1 - 1); i >= 0; i-- {
			until := end
			if i+1 < l.n {
				until = l.start[i+1]
			}
			if until <= t0 {
				break
			}
			if l.nodes[i] > limit {
				return min(until, t1)
			}
		}
		return t0
	}
	in := &t.inners[node]
	for i := in.index(t1 - 1); i >= 0; i-- {
		until := in.end(i, end)
		if until <= t0 {
			break
		}
		if in.most[i] > limit {
			if s := t.lastOver(in.child[i], h-1, t0, t1, until, limit-in.heldBack[i]); s > t0 {
				return s
			}
		}
	}
	return t0
}

// Walk calls visit for every segment of [t0, t1), cut to it. Neighbours may have
// equal nodes.
func (t *Timeline) Walk(t0, t1 int64, visit func(start, end int64, nodes int)) {
	if t.empty() {
		return
	}
	for s := t0; s < t1; s = t.here.end {
		t.find(s)
		l := &t.leaves[t.here.leaf]
		for i := l.index(s); i < l.n && (l.start[i] < t1 || i == 0); i++ {
			end := t.here.end
			if i+1 < l.n {
				end = l.start[i+1]
			}
			visit(max(l.start[i], s), min(end, t1), int(l.nodes[i]+t.here.heldBack))
		}
		if t.here.end == exact.Forever {
			return
		}
	}
}

// split makes a segment start at second s. Full nodes on the way down are halved,
// so that there is room at every level.
func (t *Timeline) split(s int64) {
	if t.empty() {
		t.init()
	}
	t.grow()
	node := t.root
	for h := t.height; h > 0; h-- {
		in := &t.inners[node]
		i := in.index(s)
		if t.full(in.child[i], h-1) {
			t.halve(node, i, h-1)
			in = &t.inners[node]
			if s >= in.start[i+1] {
				i++
			}
		}
		node = in.child[i]
	}
	l := &t.leaves[node]
	i := l.index(s)
	if l.start[i] == s {
		return
	}
	copy(l.start[i+2:l.n+1], l.start[i+1:l.n])
	copy(l.nodes[i+2:l.n+1], l.nodes[i+1:l.n])
	l.start[i+1], l.nodes[i+1] = s, l.nodes[i]
	l.n++
	t.changes++
}

func (t *Timeline) full(node int32, h int) bool {
	if h == 0 {
		return t.leaves[node].n == leafSize
	}
	return t.inners[node].n == innerSize
}

// grow puts a new root above a full one.
func (t *Timeline) grow() {
	if !t.full(t.root, t.height) {
		return
	}
	most, least, start := t.bounds(t.root, t.height)
	root := t.newInner()
	in := &t.inners[root]
	in.n = 1
	in.start[0], in.most[0], in.least[0], in.heldBack[0], in.child[0] = start, most, least, 0, t.root
	t.root = root
	t.height++
	t.halve(root, 0, t.height-1)
}

// bounds returns the maximum and minimum of a node, and its first second.
func (t *Timeline) bounds(node int32, h int) (most, least, start int64) {
	if h == 0 {
		l := &t.leaves[node]
		return slices.Max(l.nodes[:l.n]), slices.Min(l.nodes[:l.n]), l.start[0]
	}
	in := &t.inners[node]
	return slices.Max(in.most[:in.n]), slices.Min(in.least[:in.n]), in.start[0]
}

// halve moves the later half of child i, of height h, to a new child i+1.
func (t *Timeline) halve(parent int32, i, h int) {
	var sibling int32
	child := t.inners[parent].child[i]
	if h == 0 {
		sibling = t.newLeaf()
		a, b := &t.leaves[child], &t.leaves[sibling]
		half := a.n / 2
		b.n = copy(b.start[:], a.start[half:a.n])
		copy(b.nodes[:], a.nodes[half:a.n])
		a.n = half
	} else {
		sibling = t.newInner()
		a, b := &t.inners[child], &t.inners[sibling]
		*b = *a
		half := a.n / 2
		b.cut(0, half)
		a.n = half
	}
	in := &t.inners[parent]
	in.open(i + 1)
	in.child[i+1], in.heldBack[i+1] = sibling, in.heldBack[i]
	_, _, in.start[i+1] = t.bounds(sibling, h)
	t.update(parent, i, h)
	t.update(parent, i+1, h)
}

// update renews what a node knows of its child i of height h.
func (t *Timeline) update(parent int32, i, h int) {
	in := &t.inners[parent]
	most, least, _ := t.bounds(in.child[i], h)
	in.most[i], in.least[i] = most+in.heldBack[i], least+in.heldBack[i]
}

// open makes room for a child at i.
func (in *inner) open(i int) {
	copy(in.start[i+1:in.n+1], in.start[i:in.n])
	copy(in.most[i+1:in.n+1], in.most[i:in.n])
	copy(in.least[i+1:in.n+1], in.least[i:in.n])
	copy(in.heldBack[i+1:in.n+1], in.heldBack[i:in.n])
	copy(in.child[i+1:in.n+1], in.child[i:in.n])
	in.n++
}

// cut takes out the children from i to before k.
func (in *inner) cut(i, k int) {
	copy(in.start[i:], in.start[k:in.n])
	copy(in.most[i:], in.most[k:in.n])
	copy(in.least[i:], in.least[k:in.n])
	copy(in.heldBack[i:], in.heldBack[k:in.n])
	copy(in.child[i:], in.child[k:in.n])
	in.n -= k - i
}

func (t *Timeline) newLeaf() int32 {
	t.leaves = append(t.leaves, leaf{})
	return int32(len(t.leaves) - 1)
}

func (t *Timeline) newInner() int32 {
	t.inners = append(t.inners, inner{})
	return int32(len(t.inners) - 1)
}

// put adds to [start, end), at whose ends segments begin.
func (t *Timeline) put(start, end, nodes int64) {
	t.here = spot{}
	if t.height == 0 {
		t.leaves[t.root].add(start, end, nodes)
	} else {
		t.add(t.root, t.height, start, end, exact.Forever, nodes)
	}
}

func (l *leaf) add(start, end, nodes int64) {
	i := l.index(start)
	if l.start[i] < start {
		i++
	}
	for ; i < l.n && l.start[i] < end; i++ {
		l.nodes[i] += nodes
	}
}

// add adds to [start, end), at whose ends segments begin, below an inner node of
// height h that ends at last.
func (t *Timeline) add(node int32, h int, start, end, last, nodes int64) {
	in := &t.inners[node]
	for i := in.index(start); i < in.n && (in.start[i] < end || i == 0); i++ {
		if in.start[i] >= start && in.end(i, last) <= end {
			in.heldBack[i] += nodes
			in.most[i] += nodes
			in.least[i] += nodes
			continue
		}
		if h == 1 {
			t.leaves[in.child[i]].add(start, end, nodes)
		} else {
			t.add(in.child[i], h-1, start, end, in.end(i, last), nodes)
		}
		t.update(node, i, h-1)
	}
}

// join drops the segment that starts at s if the one before it in the same leaf
// has as many nodes.
func (t *Timeline) join(s int64) {
	t.find(s)
	l := &t.leaves[t.here.leaf]
	i := l.index(s)
	if i == 0 || l.start[i] != s || l.nodes[i] != l.nodes[i-1] {
		return
	}
	copy(l.start[i:], l.start[i+1:l.n])
	copy(l.nodes[i:], l.nodes[i+1:l.n])
	l.n--
	t.changes--
}

// tidy repacks the tree if many leaves have become almost empty.
func (t *Timeline) tidy() {
	if len(t.leaves) <= 8+t.changes/(leafSize/8) {
		return
	}
	steps := t.Steps()
	t.inners = t.inners[:0]
	t.init()
	for _, s := range steps {
		t.split(s.Start)
		if s.End != exact.Forever {
			t.split(s.End)
		}
		t.put(s.Start, s.End, int64(s.Nodes))
	}
}

// addSteps adds a scheduled EP, times sign, where all its changes fall into one
// leaf with room for them; it is false, and does nothing, where they do not.
func (t *Timeline) addSteps(p profile.Placement, sign int64) bool {
	if t.empty() {
		t.init()
	}
	if len(p.Steps) > leafSize/2 {
		return false
	}
	t.find(p.Start)
	end := p.End()
	l := &t.leaves[t.here.leaf]
	if end >= t.here.end || l.n+len(p.Steps)+1 > leafSize {
		return false
	}
	first, last := l.index(p.Start), l.index(end)
	var start, nodes [leafSize]int64 // what comes in place of segments first … last
	m := mergeSteps(l.start[first:last+1], l.nodes[first:last+1], p, sign, start[:], nodes[:])
	copy(l.start[first+m:], l.start[last+1:l.n])
	copy(l.nodes[first+m:], l.nodes[last+1:l.n])
	copy(l.start[first:], start[:m])
	copy(l.nodes[first:], nodes[:m])
	grown := m - (last + 1 - first)
	l.n += grown
	t.changes += grown
	t.renew(p.Start)
	return true
}

// renew renews what the inner nodes above the leaf at second s know of it.
func (t *Timeline) renew(s int64) {
	var path [16]struct {
		node int32
		i    int
	}
	node := t.root
	for h := t.height; h > 0; h-- {
		i := t.inners[node].index(s)
		path[h].node, path[h].i = node, i
		node = t.inners[node].child[i]
	}
	for h := 1; h <= t.height; h++ {
		t.update(path[h].node, path[h].i, h-1)
	}
}

// mergeSteps adds a scheduled EP, times sign, to stretches that begin at the
// seconds at, the first of them at or before the EP's start and the last of them
// the one at its end. It writes the new stretches and gives their number, at most
// len(p.Steps)+1 more.
func mergeSteps(at, used []int64, p profile.Placement, sign int64, newAt, newUsed []int64) int {
	i, m := 0, 0
	base := used[0] // in use by others
	bound, added := p.Start, int64(0)
	for k := 0; ; k++ {
		for i < len(at) && at[i] < bound {
			base = used[i]
			newAt[m], newUsed[m] = at[i], base+added
			i++
			m++
		}
		if i < len(at) && at[i] == bound {
			base = used[i]
			i++
		}
		added = 0
		if k < len(p.Steps) {
			added = sign * int64(p.Steps[k].Nodes)
		}
		if m == 0 || newUsed[m-1] != base+added {
			newAt[m], newUsed[m] = bound, base+added
			m++
		}
		if k == len(p.Steps) {
			return m
		}
		bound += p.Steps[k].Duration
	}
}
