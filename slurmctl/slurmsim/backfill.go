package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// backfill models the backfill scheduler's thread (backfill.c of sched/backfill). It rests for
// bf_interval after each cycle, then looks for changes once a second.
type backfill struct {
	Rests   time.Duration // rests until then
	At      time.Duration // next look on the agenda; 0 if none
	Ended   time.Time     // end of the last cycle
	Version uint64        // version that the last cycle saw
	Quiet   time.Time     // until when a cycle over the same state does nothing

	Appended bool // only submissions since that cycle
	Placed   []*job
	Expected []*job // jobs that may be planned
	GaveUp   bool   // stopped planning a job, though not for good

	// of the current cycle
	Now, Window, Step int64 // in seconds
	Space             []slot
	Slots             int      // slots ever created
	Tried             int      // jobs tried
	counted           bool     `codec:"-"`
	all, free         nodeSet  `codec:"-"`
	whole             bool     `codec:"-"` // all nodes that are up are available
	words             []uint64 `codec:"-"`
}

func backfillTurn(c *Cluster) {
	b := &c.Backfill
	if c.Down || len(c.Pending) == 0 {
		return
	}
	now := c.Now()
	if !now.Before(b.Quiet) {
		b.Appended = false
	}
	if c.Moment >= b.Rests && (b.Version != c.Loop.Version || !now.Before(b.Quiet) || c.options.MultifactorAge > 0) {
		b.Version, b.Rests = c.Loop.Version, c.Moment+c.options.BackfillInterval
		backfillCycle(c)
		b.Ended = c.second()
	}
	switch {
	case len(c.Pending) == 0:
	case c.options.MultifactorAge > 0:
		c.backfillAt(c.Moment + c.options.BackfillInterval)
	default:
		b.Quiet = nextEvent(c)
		c.backfillAt(c.Moment + b.Quiet.Sub(now))
	}
}

// nextEvent returns when time alone may let the backfill scheduler start a job: a job is past its
// limit, or expected to start.
func nextEvent(c *Cluster) time.Time {
	now, next := c.Now(), nextTurn(c)
	if all := c.byLimit(); len(all) > 0 {
		first := time.Unix(all[0].Ends, 0)
		if !first.After(now) {
			return now.Add(c.options.BackfillInterval) // it may end any moment
		}
		if first.Before(next) {
			next = first
		}
	}
	for _, j := range c.Backfill.Expected {
		if j.State == slurmctl.Pending && !j.Planned.IsZero() && j.Planned.Before(next) {
			next = j.Planned
		}
	}
	return maxTime(next, now.Add(c.options.BackfillInterval))
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// backfillCycle gives every pending job, in order, the earliest place that delays no earlier job.
// It starts the job if that place is now (_attempt_backfill).
func backfillCycle(c *Cluster) {
	b := &c.Backfill
	c.room.queue = readyJobs(c, c.room.queue[:0])
	queue := c.room.queue
	b.Step = int64(c.options.BackfillStep / time.Second)
	b.Now = c.Now().Unix()
	if again := b.Appended && !b.GaveUp && !c.Watched; again && len(b.Placed) <= len(queue) && slices.Equal(b.Placed, queue[:len(b.Placed)]) {
		fillAll(c, queue[len(b.Placed):]) // earlier placements are unchanged
		return
	}
	for _, j := range b.Expected {
		j.Planned = time.Time{}
	}
	b.Expected = b.Expected[:0]
	if len(queue) == 0 {
		return
	}
	b.Window = (b.Now + int64(c.options.BackfillWindow/time.Second)) / b.Step * b.Step
	b.words = b.words[:0]
	b.Space = append(b.Space[:0], slot{From: b.Now / b.Step * b.Step, To: b.Window, Free: b.copied(c.Up)})
	b.number(0, 1)
	b.Slots, b.Tried, b.Placed, b.GaveUp = 1, 0, b.Placed[:0], false
	fillAll(c, queue)
}

// fillAll places jobs in order.
func fillAll(c *Cluster, queue []*job) {
	b := &c.Backfill
	b.Appended = true
	some := small{queue: queue, most: len(c.Nodes)}
	for i, j := range queue {
		if b.Tried >= c.options.BackfillJobs || b.Slots >= max(c.options.BackfillJobs, 2) {
			return
		}
		if !c.Watched && c.Shared == 0 && !some.from(i, c.Usage.Idle.count()) {
			return // no job can start any more, and plans are not watched
		}
		b.Placed, b.Expected = append(b.Placed, j), append(b.Expected, j)
		b.counted = false
		for tasks := j.ArrayTasks; tasks > 0 && j.State == slurmctl.Pending; tasks-- {
			started, ok := fillAnywhere(c, j)
			if !ok || !started && j.ArrayTasks == 1 {
				break
			}
		}
	}
}

// small finds jobs in a queue that need no more nodes than are idle.
type small struct {
	queue []*job
	most  int // nodes in the cluster
	at    int // no job before this place fits, for the last query
	idle  int
}

// from reports whether some job from place i on fits on that many idle nodes. i never falls.
func (s *small) from(i, idle int) bool {
	if s.at < i || idle > s.idle {
		s.at = i
	}
	s.idle = idle
	for s.at < len(s.queue) && min(s.queue[s.at].NumNodes, s.most) > idle {
		s.at++
	}
	return s.at < len(s.queue)
}

// fillAnywhere runs fill in each of the job's partitions until the job starts: Slurm keeps a place
// for it in each.
func fillAnywhere(c *Cluster, j *job) (started, ok bool) {
	if len(j.Parts) == 0 {
		return fill(c, j)
	}
	first := time.Time{}
	j.somewhere(func() bool {
		if !partitionAdmits(c, j) {
			return false
		}
		j.Planned = time.Time{}
		begins, placed := fill(c, j)
		started, ok = started || begins, ok || placed
		if !j.Planned.IsZero() && (first.IsZero() || j.Planned.Before(first)) {
			first = j.Planned
		}
		return begins
	})
	if !started {
		j.Planned = first
	}
	return started, ok
}

// fill places one job: the job starts or gets a later place. ok reports whether it has either.
func fill(c *Cluster, j *job) (started, ok bool) {
	if anyLimit(c, j) != "" {
		return false, false
	}
	b := &c.Backfill
	p := placing{Cluster: c, b: b, j: j, limit: int64(j.plannedFor() / time.Second), later: b.Now, at: stretch{few: -1}}
	if len(c.Reservations) == 0 { // the nodes are then the same at all times
		b.all = append(b.all[:0], j.Part.Set...)
		c.keepSuitable(j, b.all)
		b.all.and(c.Up)
		b.whole = b.all.equal(c.Up)
	}
	for {
		switch p.attempt() {
		case startsNow:
			return true, true
		case hasPlace:
			return false, true
		case hasNone:
			return false, false
		}
	}
}

// placing is the search for a job's place. Times are in seconds.
type placing struct {
	*Cluster
	b     *backfill
	j     *job
	limit int64 // how long the job lasts
	start int64 // first moment of this attempt
	later int64 // moment of the next attempt; 0 if none
	at    stretch
}

// attempted is the outcome of an attempt to place a job.
type attempted int

const (
	goesOn    attempted = iota // another attempt follows, at placing.later
	startsNow                  // the job has started
	hasPlace                   // it has a later place
	hasNone                    // it has none in this cycle
)

// attempt tries to place the job at p.later, or after that.
func (p *placing) attempt() attempted {
	b := p.b
	p.start, p.later = p.later, 0
	overlap := false
	if len(p.Reservations) > 0 {
		allowed := p.Reservations.permitted(p.j, len(p.Nodes), time.Unix(p.start, 0), true)
		if allowed.why != fine {
			return hasNone
		}
		p.start, overlap = allowed.start.Unix(), allowed.overlap
		p.keepSuitable(p.j, allowed.nodes)
		allowed.nodes.and(p.Up)
		b.all, b.whole = append(b.all[:0], allowed.nodes...), false
	}
	if !p.findNodes(overlap) {
		return p.laterOrNone()
	}
	if !b.counted {
		b.counted = true
		b.Tried++
	}
	at, set, fits := willRun(p.Cluster, p.j, b.free)
	if !fits {
		return p.laterOrNone()
	}
	return p.place(max(at, p.start), set)
}

func (p *placing) laterOrNone() attempted {
	if p.later != 0 {
		return goesOn
	}
	return hasNone
}

// findNodes finds the nodes that are free for as long as the job lasts, in b.free, and the moment
// of the next attempt. It reports whether they are enough.
func (p *placing) findNodes(overlap bool) bool {
	b := p.b
	end := min(max(p.start, b.Now)+p.limit, b.Now+int64(forever/time.Second))
	b.stretchTo(&p.at, p.start, end, p.j.NumNodes)
	failing := b.failing(&p.at, p.j.NumNodes)
	opening := b.opening(p.at.first, end)
	if failing >= 0 && !overlap {
		for opening >= 0 && opening < failing {
			end = b.Space[opening].To + p.limit
			opening = b.opening(opening+1, end)
		}
	}
	if opening >= 0 {
		p.later, p.at.hint = b.Space[opening].To, opening+1
	}
	if overlap {
		if e := p.Reservations.nextEnd(p.start, b.Step); e != 0 && e+1 < b.Window && (p.later == 0 || e+1 < p.later) {
			p.later = e + 1
		}
	}
	return failing < 0 && (p.j.Required == nil || b.free.holds(p.j.Required))
}

// place starts the job if the moment is now, or keeps the nodes for it.
func (p *placing) place(at int64, set nodeSet) attempted {
	b := p.b
	if at <= b.Now && (set.overlaps(p.Completing) || set.overlaps(p.Refused) || set.overlaps(p.Resuming)) {
		at, p.later = b.Now+1, 0
	}
	if at <= b.Now {
		switch tryNow(p.Cluster, p.j, b.free) {
		case fine:
			return startsNow
		case reserved, notUsable, overLimits:
			return hasNone
		}
		p.later = 0
	}
	if p.later != 0 && at > p.later {
		return goesOn
	}
	if at > b.Now+int64(p.options.BackfillWindow/time.Second) {
		return hasNone
	}
	from, to := at/b.Step*b.Step, (at+p.limit)/b.Step*b.Step
	if at > b.Now && b.clashes(set, from, to) {
		p.later = at
		return goesOn
	}
	p.j.Planned = time.Unix(at, 0)
	b.reserve(set, from, to)
	return hasPlace
}

// willRun returns when and where a job could run on some of these nodes if all active jobs lasted
// until their limits (_will_run_test of select/cons_common).
func willRun(c *Cluster, j *job, from nodeSet) (int64, nodeSet, bool) {
	now := c.Backfill.Now
	if set, ok := choose(c, j, &c.Usage, from); ok {
		return now, set, true
	}
	if victims(c, j, from) != nil { // try it now, so that it makes room
		c.room.got = append(c.room.got[:0], from...)
		return now, c.room.got, true
	}
	future, cpus := &c.room.future, c.Shared > 0 || !j.whole() // whether these matter
	if c.Usage.copyTo(future, cpus); from.count() < j.NumNodes {
		return 0, nil, false
	}
	d := departures{nodeTable: &c.nodeTable, future: future, cpus: cpus, all: c.byLimit(), window: 30}
	for d.next < len(d.all) {
		last := d.group(from)
		if last == nil {
			return 0, nil, false
		}
		if set, ok := choose(c, j, future, from); ok {
			at := last.Ends
			if at <= now {
				at = max(at+int64(c.options.KillWait/time.Second), now+1)
			}
			return at, set, true
		}
	}
	return 0, nil, false
}

// departures ends active jobs in the order of their limits. It ends them in groups whose ends lie
// within a doubling time, so the last end of a group may be late for a job.
type departures struct {
	*nodeTable
	future *usage
	cpus   bool // whether the future includes shares of nodes

	all         []*job
	next        int
	window, end int64 // in seconds
}

// group ends the next group of jobs on some of these nodes and returns its last job, or nil.
func (d *departures) group(from nodeSet) (last *job) {
	more := false
	for i, one := range d.all[d.next:] {
		if !one.Set.overlaps(from) {
			continue
		}
		if d.end == 0 {
			d.end = one.Ends + d.window - one.Ends%d.window
		}
		last = one
		if d.cpus {
			d.book(d.future, one, one.Nodes, -1)
		} else {
			d.future.Idle.or(one.Set)
		}
		if more = d.pausesBefore(d.next + i + 1); more {
			d.next += i + 1
			break
		}
	}
	if !more {
		d.next = len(d.all)
	}
	for d.window *= 2; more && d.pausesBefore(d.next); {
		d.window *= 2
	}
	return last
}

// pausesBefore reports whether that job belongs to a later group.
func (d *departures) pausesBefore(next int) bool {
	return next < len(d.all) && d.all[next].Ends > d.end+d.window
}
