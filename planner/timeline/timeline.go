package timeline

import (
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Span is a stretch of time [Start, End) with a constant node count.
type Span struct {
	Start int64 // seconds
	End   int64 // seconds; Forever: without end
	Nodes int
}

// Timeline is the resource EP (paper, section 3.1): how many nodes are in use at every second. The
// zero Timeline is empty and ready for use. It is not safe for concurrent use, not even for
// queries.
//
// It is a B+ tree over the seconds at which the number changes. Inner nodes know
// the maximum and minimum below them and hold back additions that go for all below
// them. With n changes, every operation takes O(log n) where nothing else is said.
// Nodes live in two arrays and refer to each other by index: apart from the growth
// of these arrays nothing is allocated.
type Timeline struct {
	leaves []leaf
	inners []inner
	root   int32
	height int // of the tree; 0: the root is a leaf

	changes int // segments in use, for tidying

	here spot // the leaf of the last look-up
}

const (
	leafSize  = 128
	innerSize = 32
)

// leaf holds segments: from start[i] on, until the next, nodes[i] are in use, plus
// what the inner nodes above hold back.
type leaf struct {
	n     int
	start [leafSize]int64
	nodes [leafSize]int64
}

// inner holds for every child the second at which it begins, the most and the
// least nodes in use in it (what this node and the child hold back included, what
// the nodes above hold back not), and what is held back for it.
type inner struct {
	n        int
	start    [innerSize]int64
	most     [innerSize]int64
	least    [innerSize]int64
	heldBack [innerSize]int64
	child    [innerSize]int32
}

// spot is a leaf, the time that it covers and what is held back for it above.
type spot struct {
	leaf       int32
	start, end int64 // empty: none
	heldBack   int64
}

// Add puts nodes more in use during [start, end). An empty interval changes nothing.
func (t *Timeline) Add(start, end int64, nodes int) {
	if start >= end || nodes == 0 {
		return
	}
	t.split(start)
	if end != exact.Forever {
		t.split(end)
	}
	t.put(start, end, int64(nodes))
	t.join(start)
	if end != exact.Forever {
		t.join(end)
	}
	t.tidy()
}

// Remove undoes an Add of the same interval, or of one that contains it.
func (t *Timeline) Remove(start, end int64, nodes int) { t.Add(start, end, -nodes) }

// At returns the number of nodes in use at second s.
func (t *Timeline) At(s int64) int {
	if t.empty() {
		return 0
	}
	t.find(s)
	l := &t.leaves[t.here.leaf]
	return int(l.nodes[l.index(s)] + t.here.heldBack)
}

// Max returns the largest number of nodes in use during [t0, t1), 0 if that is empty:
// max(ep, t0, t1) of the paper.
func (t *Timeline) Max(t0, t1 int64) int {
	if t0 >= t1 || t.empty() {
		return 0
	}
	return int(t.most(t0, t1))
}

// Loc returns the end of the last step that has the maximum of [t0, t1), at most t1:
// loc(ep, t0, t1) of the paper. For an empty interval it is t0.
func (t *Timeline) Loc(t0, t1 int64) int64 {
	if t0 >= t1 {
		return t0
	}
	return t.LastAbove(t0, t1, t.Max(t0, t1)-1)
}

// EarliestFree returns the first second s ≥ from such that nodes nodes of capacity
// are free during [s, s+duration); Forever if there is none. It takes O(log n)
// for every stretch that is free but too short.
func (t *Timeline) EarliestFree(from int64, nodes int, duration int64, capacity int) int64 {
	limit := capacity - nodes
	for s := from; ; {
		if s = t.FirstAtMost(s, limit); s == exact.Forever {
			return exact.Forever
		}
		above := t.LastAbove(s, exact.AddTime(s, duration), limit)
		if above == s {
			return s
		}
		s = above
	}
}

// FirstAtMost returns the first second ≥ from with at most limit nodes in use; Forever
// if there is none.
func (t *Timeline) FirstAtMost(from int64, limit int) int64 {
	if t.empty() {
		if limit >= 0 {
			return from
		}
		return exact.Forever
	}
	t.find(from)
	l, k := &t.leaves[t.here.leaf], int64(limit)-t.here.heldBack
	i := l.index(from)
	if l.nodes[i] <= k {
		return from
	}
	for i++; i < l.n; i++ {
		if l.nodes[i] <= k {
			return l.start[i]
		}
	}
	if t.here.end == exact.Forever {
		return exact.Forever
	}
	return t.firstBelow(t.root, t.height, t.here.end, exact.Forever, int64(limit))
}

// FirstAbove returns the first second in [t0, t1) with more than limit nodes in use;
// Forever if there is none.
func (t *Timeline) FirstAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return exact.Forever
	}
	if t.empty() {
		if limit < 0 {
			return t0
		}
		return exact.Forever
	}
	t.find(t0)
	l, k := &t.leaves[t.here.leaf], int64(limit)-t.here.heldBack
	for i := l.index(t0); i < l.n && l.start[i] < t1; i++ {
		if l.nodes[i] > k {
			return max(l.start[i], t0)
		}
	}
	if t.here.end >= t1 {
		return exact.Forever
	}
	return t.firstOver(t.root, t.height, t.here.end, t1, exact.Forever, int64(limit))
}

// LastAbove returns the end of the last stretch within [t0, t1) with more than limit
// nodes in use, at most t1; t0 if there is none. It jumps at least as far as Loc.
func (t *Timeline) LastAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return t0
	}
	if t.empty() {
		if limit < 0 {
			return t1
		}
		return t0
	}
	t.find(t0)
	if t.here.end < t1 && t.height > 0 {
		return t.lastOver(t.root, t.height, t0, t1, exact.Forever, int64(limit))
	}
	l, k := &t.leaves[t.here.leaf], int64(limit)-t.here.heldBack
	i := l.index(t0)
	last := t0
	for ; i < l.n && l.start[i] < t1; i++ {
		if l.nodes[i] > k {
			if i+1 < l.n {
				last = l.start[i+1]
			} else {
				last = t.here.end
			}
		}
	}
	return min(last, t1)
}

// AsOne reports whether steps that follow each other without a gap fit from second
// start on: it is start then, else a later second before which they do not; Forever: never.
func (t *Timeline) AsOne(p profile.Profile, start int64, capacity int) int64 {
	if t.empty() {
		return start
	}
	earliest := start
	after, k := int64(0), 0 // step k starts after seconds after the first
	end, limit := start+p[0].Duration, int64(capacity-p[0].Nodes)
	for s := start; ; s = t.here.end {
		t.find(s)
		l := &t.leaves[t.here.leaf]
		for i := l.index(s); i < l.n; i++ {
			until := t.here.end
			if i+1 < l.n {
				until = l.start[i+1]
			}
			used := l.nodes[i] + t.here.heldBack
			for {
				if used > limit {
					if until == exact.Forever {
						return exact.Forever
					}
					earliest = max(earliest, until-after)
				}
				if end > until {
					break
				}
				after += p[k].Duration
				if k++; k == len(p) {
					return earliest
				}
				limit = int64(capacity - p[k].Nodes)
				end += p[k].Duration
				if start+after == until {
					break
				}
			}
		}
	}
}

// Clone returns an independent copy. It takes O(n).
func (t *Timeline) Clone() *Timeline {
	c := *t
	c.leaves = append([]leaf(nil), t.leaves...)
	c.inners = append([]inner(nil), t.inners...)
	return &c
}

// Reset empties the timeline and keeps its memory.
func (t *Timeline) Reset() {
	*t = Timeline{leaves: t.leaves[:0], inners: t.inners[:0]}
}

// Steps lists the spans with nodes in use, in time order. It takes O(n).
func (t *Timeline) Steps() []Span {
	var spans []Span
	t.Walk(exact.Dawn, exact.Forever, func(start, end int64, nodes int) {
		if k := len(spans) - 1; k >= 0 && spans[k].End == start && spans[k].Nodes == nodes {
			spans[k].End = end
		} else if nodes != 0 {
			spans = append(spans, Span{start, end, nodes})
		}
	})
	return spans
}

// AddPlacement puts a scheduled EP in use, step by step.
func (t *Timeline) AddPlacement(p profile.Placement) {
	if t.addSteps(p, 1) {
		return
	}
	at := p.Start
	for _, s := range p.Steps {
		t.Add(at, at+s.Duration, s.Nodes)
		at += s.Duration
	}
}

// RemovePlacement undoes AddPlacement.
func (t *Timeline) RemovePlacement(p profile.Placement) {
	if t.addSteps(p, -1) {
		t.tidy()
		return
	}
	at := p.Start
	for _, s := range p.Steps {
		t.Remove(at, at+s.Duration, s.Nodes)
		at += s.Duration
	}
}
