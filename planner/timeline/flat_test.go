package timeline

import (
	"math"
	"sort"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// flatTimeline is the simple form of Timeline: one sorted array, scanned.
type flatTimeline struct {
	segments []segment // ascending; each lasts until the next; before the first: 0
}

type segment struct {
	start int64
	nodes int
}

// Add puts nodes more in use during [start, end). An empty interval changes nothing.
func (t *flatTimeline) Add(start, end int64, nodes int) {
	if start >= end || nodes == 0 {
		return
	}
	first := t.split(start)
	last := len(t.segments)
	if end != exact.Forever {
		last = t.split(end)
	}
	for i := first; i < last; i++ {
		t.segments[i].nodes += nodes
	}
	t.merge(last)
	t.merge(first)
}

// Remove undoes an Add of the same interval, or of one that contains it.
func (t *flatTimeline) Remove(start, end int64, nodes int) { t.Add(start, end, -nodes) }

// split makes a segment start at second s and gives its index.
func (t *flatTimeline) split(s int64) int {
	i := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].start >= s })
	if i < len(t.segments) && t.segments[i].start == s {
		return i
	}
	nodes := 0
	if i > 0 {
		nodes = t.segments[i-1].nodes
	}
	t.segments = append(t.segments, segment{})
	copy(t.segments[i+1:], t.segments[i:])
	t.segments[i] = segment{s, nodes}
	return i
}

// merge drops segment i if the one before has as many nodes.
func (t *flatTimeline) merge(i int) {
	if i >= len(t.segments) {
		return
	}
	before := 0
	if i > 0 {
		before = t.segments[i-1].nodes
	}
	if t.segments[i].nodes == before {
		t.segments = append(t.segments[:i], t.segments[i+1:]...)
	}
}

// index returns the segment at second s, -1 before the first.
func (t *flatTimeline) index(s int64) int {
	return sort.Search(len(t.segments), func(i int) bool { return t.segments[i].start > s }) - 1
}

// At returns the number of nodes in use at second s.
func (t *flatTimeline) At(s int64) int {
	if i := t.index(s); i >= 0 {
		return t.segments[i].nodes
	}
	return 0
}

// Max returns the largest number of nodes in use during [t0, t1), 0 if that is empty:
// max(ep, t0, t1) of the paper.
func (t *flatTimeline) Max(t0, t1 int64) int {
	most, _ := t.maxLoc(t0, t1)
	return most
}

// Loc returns the end of the last step that has the maximum of [t0, t1), at most t1:
// loc(ep, t0, t1) of the paper. For an empty interval it is t0.
func (t *flatTimeline) Loc(t0, t1 int64) int64 {
	_, loc := t.maxLoc(t0, t1)
	return loc
}

func (t *flatTimeline) maxLoc(t0, t1 int64) (most int, loc int64) {
	if t0 >= t1 {
		return 0, t0
	}
	most = math.MinInt
	for i := t.index(t0); ; i++ {
		nodes, end := 0, exact.Forever
		if i >= 0 {
			nodes = t.segments[i].nodes
		}
		if i+1 < len(t.segments) {
			end = t.segments[i+1].start
		}
		if nodes >= most {
			most, loc = nodes, min(end, t1)
		}
		if end >= t1 {
			return most, loc
		}
	}
}

// EarliestFree returns the first second s ≥ from such that nodes nodes of capacity
// are free during [s, s+duration); Forever if there is none.
func (t *flatTimeline) EarliestFree(from int64, nodes int, duration int64, capacity int) int64 {
	limit := capacity - nodes
	start := from
	for i := t.index(from); ; i++ {
		used, end := 0, exact.Forever
		if i >= 0 {
			used = t.segments[i].nodes
		}
		if i+1 < len(t.segments) {
			end = t.segments[i+1].start
		}
		if used > limit {
			if end == exact.Forever {
				return exact.Forever
			}
			start = end
		} else if end-duration >= start || end == exact.Forever {
			return start
		}
	}
}

// FirstAbove returns the first second in [t0, t1) with more than limit nodes in use;
// Forever if there is none.
func (t *flatTimeline) FirstAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return exact.Forever
	}
	for i := t.index(t0); ; i++ {
		used, start, end := 0, t0, exact.Forever
		if i >= 0 {
			used, start = t.segments[i].nodes, max(t0, t.segments[i].start)
		}
		if i+1 < len(t.segments) {
			end = t.segments[i+1].start
		}
		if start >= t1 {
			return exact.Forever
		}
		if used > limit {
			return start
		}
		if end == exact.Forever {
			return exact.Forever
		}
	}
}

// LastAbove returns the end of the last stretch within [t0, t1) with more than limit
// nodes in use, at most t1; t0 if there is none. It jumps at least as far as Loc.
func (t *flatTimeline) LastAbove(t0, t1 int64, limit int) int64 {
	if t0 >= t1 {
		return t0
	}
	for i := t.index(t1 - 1); ; i-- {
		used, start, end := 0, int64(math.MinInt64), exact.Forever
		if i >= 0 {
			used, start = t.segments[i].nodes, t.segments[i].start
		}
		if i+1 < len(t.segments) {
			end = t.segments[i+1].start
		}
		if end <= t0 {
			return t0
		}
		if used > limit {
			return min(end, t1)
		}
		if start <= t0 {
			return t0
		}
	}
}

// Steps lists the spans with nodes in use, in time order.
func (t *flatTimeline) Steps() []Span {
	var spans []Span
	for i, s := range t.segments {
		end := exact.Forever
		if i+1 < len(t.segments) {
			end = t.segments[i+1].start
		}
		if s.nodes != 0 {
			spans = append(spans, Span{Start: s.start, End: end, Nodes: s.nodes})
		}
	}
	return spans
}
