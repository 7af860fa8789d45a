package slurm

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Lanes holds the times at which each node of the cluster is in use, in ascending order with gaps between them. Rigid
// jobs are placed one after the other, each as early as it fits, like a backfill scheduler that delays no job for a later
// one. That takes O(w log w) per job, where w is the number of gaps in which nodes are free for long enough.
type Lanes struct {
	origin int64
	busy   [][]planner.NodeBusy
	tried  []trial

	licenses *LicensesLeft // nil: none count

	room         []window // scratch
	starts, ends []int64  // scratch
}

// Licensed has jobs start only while their licences are free.
func (l *Lanes) Licensed(c *state.Core, o *msg.Occupancy) { l.licenses = LicensesNow(c, o) }

// trial says where a job was placed: at is planner.Forever if it fits nowhere. No later job on these nodes that needs
// as much, or more, begins before that.
type trial struct {
	nodes       []int
	count       int
	lasts, from int64
	at          int64
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
		all := slices.Concat(o.Busy[n], o.ReservedOn([]int{n}, ""))
		if o.Tenures != nil {
			for _, t := range o.Tenures[n] {
				all = append(all, t.NodeBusy)
			}
		}
		slices.SortFunc(all, func(a, b planner.NodeBusy) int { return cmp.Compare(a.Start, b.Start) })
		for _, b := range all {
			if last := len(l.busy[n]) - 1; last >= 0 && b.Start <= l.busy[n][last].End {
				l.busy[n][last].End = max(l.busy[n][last].End, b.End)
			} else {
				l.busy[n] = append(l.busy[n], b)
			}
		}
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
		if p.Parts != nil {
			l.placeParts(p, held)
			continue
		}
		one := trial{p.Nodes, count, lasts, max(p.Earliest-l.origin, 0), planner.Forever}
		if from := l.notBefore(&one); from < planner.Forever {
			l.windows(p.Nodes, from, lasts)
			one.at = l.first(count)
		}
		l.tried = append(l.tried, one)
		at := one.at
		for from := l.licensed(p, at); from != at; from = l.licensed(p, at) {
			l.windows(p.Nodes, from, lasts)
			at = l.first(count)
		}
		if at < planner.Forever {
			p.Start, p.At = at+l.origin, make([]int, 0, count)
			l.takeFirst(p, count, held)
			l.takeLicenses(p)
		}
	}
}

// placeParts does what Place does for a job that gets each of its parts.
func (l *Lanes) placeParts(p *Placed, held []int64) {
	lasts, at := p.Profile[0].Duration, max(p.Earliest-l.origin, 0)
	for before := int64(-1); before < at && at < planner.Forever; {
		before = at
		for _, part := range p.Parts {
			if at < planner.Forever {
				l.windows(part.Nodes, at, lasts)
				at = l.first(part.Count)
			}
		}
		at = l.licensed(p, at)
	}
	if at == planner.Forever {
		return
	}
	p.Start = at + l.origin
	for _, part := range p.Parts {
		l.windows(part.Nodes, at, lasts)
		l.takeFirst(p, len(p.At)+part.Count, held)
	}
	l.takeLicenses(p)
}

// licensed returns when, at the earliest, a job can start that has its nodes at some time.
func (l *Lanes) licensed(p *Placed, at int64) int64 {
	if l.licenses == nil || at == planner.Forever {
		return at
	}
	return l.licenses.After(at, p.Licenses, p.Profile[0].Duration)
}

func (l *Lanes) takeLicenses(p *Placed) {
	if l.licenses != nil {
		l.licenses.Take(p.Start-l.origin, p.Start-l.origin+p.Profile[0].Duration, p.Licenses)
	}
}

// takeFirst takes nodes that have room at a job's start, until it has so many.
func (l *Lanes) takeFirst(p *Placed, count int, held []int64) {
	at, lasts := p.Start-l.origin, p.Profile[0].Duration
	had := len(p.At)
	for _, beside := range []bool{true, false} {
		for _, w := range l.room {
			if len(p.At) == count {
				break
			}
			if w.first <= at && at <= w.last && beside == (held[w.node] >= p.Start+lasts) {
				p.At = append(p.At, w.node)
			}
		}
	}
	for _, n := range p.At[had:] {
		l.take(planner.NodeBusy{Node: n, Start: at, End: at + lasts})
	}
}

// Take marks the places of a list as in use.
func (l *Lanes) Take(list []Placed) {
	for i := range list {
		p := &list[i]
		for _, n := range p.At {
			l.take(planner.NodeBusy{Node: n, Start: p.Start - l.origin, End: p.Start - l.origin + p.Profile[0].Duration})
		}
	}
}

// notBefore returns a second before which a job cannot start, from what was tried before.
func (l *Lanes) notBefore(one *trial) int64 {
	from := one.from
	for i := range l.tried {
		t := &l.tried[i]
		if t.count <= one.count && t.lasts <= one.lasts && t.from <= one.from && t.at > from && len(t.nodes) == len(one.nodes) &&
			(len(t.nodes) == 0 || &t.nodes[0] == &one.nodes[0]) {
			from = t.at
		}
	}
	return from
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

// first returns the first second at which a job may start on `count` nodes; planner.Forever if there is none.
func (l *Lanes) first(count int) int64 {
	l.starts, l.ends = l.starts[:0], l.ends[:0]
	for _, w := range l.room {
		if w.last == planner.Forever {
			l.starts = append(l.starts, w.first)
		}
	}
	latest := smallest(l.starts, count) // by then it has room, whatever the gaps are
	l.starts = l.starts[:0]
	for _, w := range l.room {
		if w.first > latest {
			continue
		}
		if l.starts = append(l.starts, w.first); w.last < latest {
			l.ends = append(l.ends, w.last)
		}
	}
	slices.Sort(l.starts)
	slices.Sort(l.ends)
	over := 0
	for i, at := range l.starts {
		for over < len(l.ends) && l.ends[over] < at {
			over++
		}
		if i+1-over >= count {
			return at
		}
	}
	return planner.Forever
}

// smallest returns the member that is at position k, from 1, once a list is sorted; planner.Forever beyond its end. It
// changes the order of the list.
func smallest(list []int64, k int) int64 {
	if k > len(list) {
		return planner.Forever
	}
	for len(list) > 12 {
		pivot := list[len(list)/2]
		i, j := 0, len(list)-1
		for i <= j {
			for list[i] < pivot {
				i++
			}
			for list[j] > pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j+1:
			list = list[:j+1]
		case k > i:
			list, k = list[i:], k-i
		default:
			return pivot
		}
	}
	slices.Sort(list)
	return list[k-1]
}

// take marks a free node as in use.
func (l *Lanes) take(b planner.NodeBusy) {
	busy := l.busy[b.Node]
	i, _ := slices.BinarySearchFunc(busy, b, func(x, y planner.NodeBusy) int { return cmp.Compare(x.Start, y.Start) })
	next := i
	if i > 0 && busy[i-1].End >= b.Start {
		i--
		b.Start = busy[i].Start
	}
	if next < len(busy) && busy[next].Start <= b.End {
		b.End = busy[next].End
		next++
	}
	l.busy[b.Node] = slices.Replace(busy, i, next, b)
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
