package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// backfill models the backfill scheduler's thread (backfill.c of sched/backfill). It rests for
// bf_interval after each cycle, then looks for changes once a second.
type backfill struct {
	rests   time.Duration // rests until then
	at      time.Duration // next look on the agenda; 0 if none
	ended   time.Time     // end of the last cycle
	version uint64        // version that the last cycle saw
	quiet   time.Time     // until when a cycle over the same state does nothing

	appended bool // only submissions since that cycle
	placed   []*job
	expected []*job // jobs that may be planned
	gaveUp   bool   // stopped planning a job, though not for good

	// of the current cycle
	now, window, step int64 // in seconds
	space             []slot
	slots             int // slots ever created
	tried             int // jobs tried
	counted           bool
	all, free         nodeSet
	whole             bool // all nodes that are up are available
	words             []uint64
}

func backfillTurn(c *Cluster) {
	b := &c.backfill
	if c.down || len(c.pending) == 0 {
		return
	}
	now := c.Now()
	if !now.Before(b.quiet) {
		b.appended = false
	}
	if c.now >= b.rests && (b.version != c.loop.version || !now.Before(b.quiet) || c.options.MultifactorAge > 0) {
		b.version, b.rests = c.loop.version, c.now+c.options.BackfillInterval
		backfillCycle(c)
		b.ended = c.second()
	}
	switch {
	case len(c.pending) == 0:
	case c.options.MultifactorAge > 0:
		c.backfillAt(c.now + c.options.BackfillInterval)
	default:
		b.quiet = nextEvent(c)
		c.backfillAt(c.now + b.quiet.Sub(now))
	}
}

// nextEvent returns when time alone may let the backfill scheduler start a job: a job is past its
// limit, or expected to start.
func nextEvent(c *Cluster) time.Time {
	now, next := c.Now(), nextTurn(c)
	if all := c.byLimit(); len(all) > 0 {
		first := time.Unix(all[0].ends, 0)
		if !first.After(now) {
			return now.Add(c.options.BackfillInterval) // it may end any moment
		}
		if first.Before(next) {
			next = first
		}
	}
	for _, j := range c.backfill.expected {
		if j.State == slurmctl.Pending && !j.planned.IsZero() && j.planned.Before(next) {
			next = j.planned
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
	b := &c.backfill
	c.room.queue = readyJobs(c, c.room.queue[:0])
	queue := c.room.queue
	b.step = int64(c.options.BackfillStep / time.Second)
	b.now = c.Now().Unix()
	if again := b.appended && !b.gaveUp && !c.watched; again && len(b.placed) <= len(queue) && slices.Equal(b.placed, queue[:len(b.placed)]) {
		fillAll(c, queue[len(b.placed):]) // earlier placements are unchanged
		return
	}
	for _, j := range b.expected {
		j.planned = time.Time{}
	}
	b.expected = b.expected[:0]
	if len(queue) == 0 {
		return
	}
	b.window = (b.now + int64(c.options.BackfillWindow/time.Second)) / b.step * b.step
	b.words = b.words[:0]
	b.space = append(b.space[:0], slot{from: b.now / b.step * b.step, to: b.window, free: b.copied(c.up)})
	b.number(0, 1)
	b.slots, b.tried, b.placed, b.gaveUp = 1, 0, b.placed[:0], false
	fillAll(c, queue)
}

// fillAll places jobs in order.
func fillAll(c *Cluster, queue []*job) {
	b := &c.backfill
	b.appended = true
	some := small{queue: queue, most: len(c.nodes)}
	for i, j := range queue {
		if b.tried >= c.options.BackfillJobs || b.slots >= max(c.options.BackfillJobs, 2) {
			return
		}
		if !c.watched && c.shared == 0 && !some.from(i, c.usage.idle.count()) {
			return // no job can start any more, and plans are not watched
		}
		b.placed, b.expected = append(b.placed, j), append(b.expected, j)
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
	if len(j.parts) == 0 {
		return fill(c, j)
	}
	first := time.Time{}
	j.somewhere(func() bool {
		if !partitionAdmits(c, j) {
			return false
		}
		j.planned = time.Time{}
		begins, placed := fill(c, j)
		started, ok = started || begins, ok || placed
		if !j.planned.IsZero() && (first.IsZero() || j.planned.Before(first)) {
			first = j.planned
		}
		return begins
	})
	if !started {
		j.planned = first
	}
	return started, ok
}

// fill places one job: the job starts or gets a later place. ok reports whether it has either.
func fill(c *Cluster, j *job) (started, ok bool) {
	if limitReason(c, j) != "" {
		return false, false
	}
	b := &c.backfill
	p := placing{Cluster: c, b: b, j: j, limit: int64(j.plannedFor() / time.Second), later: b.now, at: stretch{few: -1}}
	if len(c.reservations) == 0 { // the nodes are then the same at all times
		b.all = append(b.all[:0], j.part.set...)
		c.keepSuitable(j, b.all)
		b.all.and(c.up)
		b.whole = b.all.equal(c.up)
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
	if len(p.reservations) > 0 {
		allowed := p.reservations.permitted(p.j, len(p.nodes), time.Unix(p.start, 0), true)
		if allowed.why != fine {
			return hasNone
		}
		p.start, overlap = allowed.start.Unix(), allowed.overlap
		p.keepSuitable(p.j, allowed.nodes)
		allowed.nodes.and(p.up)
		b.all, b.whole = append(b.all[:0], allowed.nodes...), false
	}
	if !p.findNodes(overlap) {
		return p.laterOrNone()
	}
	if !b.counted {
		b.counted = true
		b.tried++
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
	end := min(max(p.start, b.now)+p.limit, b.now+int64(forever/time.Second))
	b.stretchTo(&p.at, p.start, end, p.j.NumNodes)
	failing := b.failing(&p.at, p.j.NumNodes)
	opening := b.opening(p.at.first, end)
	if failing >= 0 && !overlap {
		for opening >= 0 && opening < failing {
			end = b.space[opening].to + p.limit
			opening = b.opening(opening+1, end)
		}
	}
	if opening >= 0 {
		p.later, p.at.hint = b.space[opening].to, opening+1
	}
	if overlap {
		if e := p.reservations.nextEnd(p.start, b.step); e != 0 && e+1 < b.window && (p.later == 0 || e+1 < p.later) {
			p.later = e + 1
		}
	}
	return failing < 0 && (p.j.required == nil || b.free.holds(p.j.required))
}

// place starts the job if the moment is now, or keeps the nodes for it.
func (p *placing) place(at int64, set nodeSet) attempted {
	b := p.b
	if at <= b.now && (set.overlaps(p.completing) || set.overlaps(p.refused) || set.overlaps(p.resuming)) {
		at, p.later = b.now+1, 0
	}
	if at <= b.now {
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
	if at > b.now+int64(p.options.BackfillWindow/time.Second) {
		return hasNone
	}
	from, to := at/b.step*b.step, (at+p.limit)/b.step*b.step
	if at > b.now && b.clashes(set, from, to) {
		p.later = at
		return goesOn
	}
	p.j.planned = time.Unix(at, 0)
	b.reserve(set, from, to)
	return hasPlace
}

// willRun returns when and where a job could run on some of these nodes if all active jobs lasted
// until their limits (_will_run_test of select/cons_common).
func willRun(c *Cluster, j *job, from nodeSet) (int64, nodeSet, bool) {
	now := c.backfill.now
	if set, ok := choose(c, j, &c.usage, from); ok {
		return now, set, true
	}
	if victims(c, j, from) != nil { // try it now, so that it makes room
		c.room.got = append(c.room.got[:0], from...)
		return now, c.room.got, true
	}
	future, cpus := &c.room.future, c.shared > 0 || !j.whole() // whether these matter
	if c.usage.copyTo(future, cpus); from.count() < j.NumNodes {
		return 0, nil, false
	}
	d := departures{nodeTable: &c.nodeTable, future: future, cpus: cpus, all: c.byLimit(), window: 30}
	for d.next < len(d.all) {
		last := d.group(from)
		if last == nil {
			return 0, nil, false
		}
		if set, ok := choose(c, j, future, from); ok {
			at := last.ends
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
		if !one.set.overlaps(from) {
			continue
		}
		if d.end == 0 {
			d.end = one.ends + d.window - one.ends%d.window
		}
		last = one
		if d.cpus {
			d.book(d.future, one, one.nodes, -1)
		} else {
			d.future.idle.or(one.set)
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
	return next < len(d.all) && d.all[next].ends > d.end+d.window
}
