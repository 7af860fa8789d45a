package core

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// lanes holds the times at which each node of the cluster is in use, in ascending order. Rigid jobs are placed
// one after the other, each as early as it fits, like a backfill scheduler that delays no job for a later one.
// That takes O(nodes) per job.
type lanes struct {
	origin int64
	busy   [][]planner.NodeBusy
	room   []window // scratch
}

// window is the time in which a job may start on a node: from first to last.
type window struct {
	node        int
	first, last int64
}

// lanesOf returns lanes with everything in use, including what would yield to another job.
func lanesOf(o *occupancy) *lanes {
	l := &lanes{origin: o.origin, busy: make([][]planner.NodeBusy, len(o.busy))}
	for n := range o.busy {
		all := slices.Concat(o.busy[n], o.reserved[n])
		if o.tenures != nil {
			for _, t := range o.tenures[n] {
				all = append(all, t.NodeBusy)
			}
		}
		slices.SortFunc(all, func(a, b planner.NodeBusy) int { return cmp.Compare(a.Start, b.Start) })
		l.busy[n] = all
	}
	return l
}

// place assigns a start and nodes to each job of a list. Among nodes that are free equally early, a job first
// gets those whose hold begins only after its end.
func (l *lanes) place(list []placed, held []int64) {
	for i := range list {
		p := &list[i]
		lasts, count := p.profile[0].Duration, p.profile[0].Nodes
		p.start, p.at = planner.Forever, nil
		l.windows(p.nodes, max(p.earliest-l.origin, 0), lasts)
		at, ok := l.first(count)
		if !ok {
			continue
		}
		p.start = at + l.origin
		for _, beside := range []bool{true, false} {
			for _, w := range l.room {
				if len(p.at) < count && w.first <= at && at <= w.last && beside == (held[w.node] >= p.start+lasts) {
					p.at = append(p.at, w.node)
				}
			}
		}
		for _, n := range p.at {
			l.take(planner.NodeBusy{Node: n, Start: at, End: at + lasts})
		}
	}
}

// windows finds when a job of length `lasts` may start on each node of a list.
func (l *lanes) windows(nodes []int, from, lasts int64) {
	l.room = l.room[:0]
	for _, n := range nodes {
		at := from
		for _, b := range l.busy[n] {
			if b.Start-lasts >= at {
				l.room = append(l.room, window{n, at, b.Start - lasts})
			}
			at = max(at, b.End)
		}
		if at < planner.Forever-lasts {
			l.room = append(l.room, window{n, at, planner.Forever})
		}
	}
}

// first returns the first second at which a job may start on `count` nodes.
func (l *lanes) first(count int) (int64, bool) {
	starts, ends := make([]int64, len(l.room)), make([]int64, len(l.room))
	for i, w := range l.room {
		starts[i], ends[i] = w.first, w.last
	}
	slices.Sort(starts)
	slices.Sort(ends)
	over := 0
	for i, at := range starts {
		for ends[over] < at {
			over++
		}
		if i+1-over >= count {
			return at, true
		}
	}
	return 0, false
}

// take marks a node as in use.
func (l *lanes) take(b planner.NodeBusy) {
	i, _ := slices.BinarySearchFunc(l.busy[b.Node], b, func(x, y planner.NodeBusy) int { return cmp.Compare(x.Start, y.Start) })
	l.busy[b.Node] = slices.Insert(l.busy[b.Node], i, b)
}

// free reports whether a node is unused for `lasts` seconds from now on.
func (l *lanes) free(n int, lasts int64) bool {
	return !slices.ContainsFunc(l.busy[n], func(b planner.NodeBusy) bool { return b.Start < lasts && b.End > 0 })
}
