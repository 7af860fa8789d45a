package slurm

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Lanes holds the times at which each node of the cluster is in use, in ascending order. Rigid jobs are placed
// one after the other, each as early as it fits, like a backfill scheduler that delays no job for a later one.
// That takes O(nodes) per job.
type Lanes struct {
	origin int64
	busy   [][]planner.NodeBusy
	room   []window // scratch
}

// window is the time in which a job may start on a node: from first to last.
type window struct {
	node        int
	first, last int64
}

// LanesOf returns lanes with everything in use, including what would yield to another job.
func LanesOf(o *msg.Occupancy) *Lanes {
	l := &Lanes{origin: o.Origin, busy: make([][]planner.NodeBusy, len(o.Busy))}
	for n := range o.Busy {
		all := slices.Concat(o.Busy[n], o.Reserved[n])
		if o.Tenures != nil {
			for _, t := range o.Tenures[n] {
				all = append(all, t.NodeBusy)
			}
		}
		slices.SortFunc(all, func(a, b planner.NodeBusy) int { return cmp.Compare(a.Start, b.Start) })
		l.busy[n] = all
	}
	return l
}

// Place assigns a start and nodes to each job of a list. Among nodes that are free equally early, a job first
// gets those whose hold begins only after its end.
func (l *Lanes) Place(list []Placed, held []int64) {
	for i := range list {
		p := &list[i]
		lasts, count := p.Profile[0].Duration, p.Profile[0].Nodes
		p.Start, p.At = planner.Forever, nil
		l.windows(p.Nodes, max(p.Earliest-l.origin, 0), lasts)
		at, ok := l.first(count)
		if !ok {
			continue
		}
		p.Start = at + l.origin
		for _, beside := range []bool{true, false} {
			for _, w := range l.room {
				if len(p.At) < count && w.first <= at && at <= w.last && beside == (held[w.node] >= p.Start+lasts) {
					p.At = append(p.At, w.node)
				}
			}
		}
		for _, n := range p.At {
			l.take(planner.NodeBusy{Node: n, Start: at, End: at + lasts})
		}
	}
}

// windows finds when a job of length `lasts` may start on each node of a list.
func (l *Lanes) windows(nodes []int, from, lasts int64) {
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
func (l *Lanes) first(count int) (int64, bool) {
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
func (l *Lanes) take(b planner.NodeBusy) {
	i, _ := slices.BinarySearchFunc(l.busy[b.Node], b, func(x, y planner.NodeBusy) int { return cmp.Compare(x.Start, y.Start) })
	l.busy[b.Node] = slices.Insert(l.busy[b.Node], i, b)
}

// Free reports whether a node is unused for `lasts` seconds from now on.
func (l *Lanes) Free(n int, lasts int64) bool {
	return !slices.ContainsFunc(l.busy[n], func(b planner.NodeBusy) bool { return b.Start < lasts && b.End > 0 })
}

// Turn holds what decides in Slurm which job goes first: the tier of the partition, then the priority.
type Turn struct {
	Tier     int
	Priority uint64
}

func (t Turn) Compare(other Turn) int {
	return cmp.Or(cmp.Compare(t.Tier, other.Tier), cmp.Compare(t.Priority, other.Priority))
}

// Reach returns how many seconds away the job's time limit in Slurm is.
func Reach(c *state.Core, j *state.Job, now int64) int64 {
	if j.Record.EndTime.IsZero() || j.Record.TimeLimit == slurmctl.Unlimited {
		return Seconds(j.Record.TimeLimit)
	}
	return c.Since(now, j.Record.EndTime.Unix()) - now
}
