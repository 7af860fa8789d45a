package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// backfill is the backfill scheduler's thread (backfill.c of sched/backfill): it rests
// for bf_interval after each of its cycles, then looks once a second for changes.
type backfill struct {
	rests   time.Duration // until then
	at      time.Duration // the next look on the agenda; 0: none
	ended   time.Time     // the last cycle
	updated time.Time     // anything, last (last_job_update and its like)
	version uint64        // that the last cycle has seen
	quiet   time.Time     // until when a cycle over the same state does nothing
	space   []slot
	slots   int // ever made in this cycle
}

// slot is a time with the nodes that nobody is to have then, in seconds.
type slot struct {
	from, to int64
	free     nodeSet
}

// backfillSoon puts the thread's next look at which there may be work on the agenda.
func (c *Cluster) backfillSoon() { c.backfillAt(c.now) }

func (c *Cluster) backfillAt(then time.Duration) {
	b := &c.backfill
	if c.options.BackfillInterval < 0 || c.down || len(c.pending) == 0 {
		return
	}
	next := max(b.rests, c.options.BackfillInterval)
	if then > next {
		next += (then - next + tick - 1) / tick * tick
	}
	if next <= c.now {
		next += tick
	}
	if b.at > c.now && b.at <= next {
		return
	}
	b.at = next
	c.at(next, func() {
		if b.at == next && c.now == next {
			b.at = 0
			c.backfillLook()
		}
	})
}

func (c *Cluster) backfillLook() {
	b := &c.backfill
	if c.down || len(c.pending) == 0 {
		return
	}
	now := c.Now()
	if c.now >= b.rests && (b.version != c.loop.version || !now.Before(b.quiet) || c.options.MultifactorAge > 0) {
		b.version, b.rests = c.loop.version, c.now+c.options.BackfillInterval
		c.backfillCycle()
		b.ended = c.second()
	}
	switch {
	case len(c.pending) == 0:
	case c.options.MultifactorAge > 0:
		c.backfillAt(c.now + c.options.BackfillInterval)
	default:
		b.quiet = c.nextEvent()
		c.backfillAt(c.now + b.quiet.Sub(now))
	}
}

// nextEvent is when time alone may let the backfill scheduler start something: a job is
// past its limit, or expected to start.
func (c *Cluster) nextEvent() time.Time {
	now, next := c.Now(), c.nextTurn()
	for _, j := range c.byLimit() {
		if j.end.After(now) && j.end.Before(next) {
			next = j.end
		}
		if !j.end.After(now) {
			return now.Add(c.options.BackfillInterval) // it may be gone any moment
		}
		break
	}
	for _, j := range c.pending {
		if !j.planned.IsZero() && j.planned.Before(next) {
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

// byLimit is the active jobs in the order in which their limits end them.
func (c *Cluster) byLimit() []*job {
	if c.byEnd == nil && len(c.active) > 0 {
		c.byEnd = slices.Clone(c.active)
		slices.SortStableFunc(c.byEnd, func(a, b *job) int { return a.end.Compare(b.end) })
	}
	return c.byEnd
}

// backfillCycle gives every pending job in order the earliest place that delays nobody
// before it, and starts it if that is now (_attempt_backfill).
func (c *Cluster) backfillCycle() {
	b := &c.backfill
	step := int64(c.options.BackfillStep / time.Second)
	now := c.Now().Unix()
	for _, j := range c.pending {
		j.planned = time.Time{}
	}
	queue := c.queue()
	if len(queue) == 0 {
		return
	}
	window := (now + int64(c.options.BackfillWindow/time.Second)) / step * step
	b.space = append(b.space[:0], slot{now / step * step, window, c.up.clone()})
	b.slots = 1
	tried := 0
	for _, j := range queue {
		if tried >= c.options.BackfillJobs {
			return
		}
		counted := false
		for tasks := j.ArrayTasks; tasks > 0 && j.State == slurmctl.Pending; tasks-- {
			started, ok := c.fill(j, now, window, step, func() {
				if !counted {
					counted = true
					tried++
				}
			})
			if !ok || !started && j.ArrayTasks == 1 {
				break
			}
			if b.slots >= max(c.options.BackfillJobs, 2) {
				return
			}
		}
	}
}

// fill places one job: it starts, or gets a place later; ok says that it has one.
func (c *Cluster) fill(j *job, now, window, step int64, count func()) (started, ok bool) {
	b := &c.backfill
	limit := int64(c.backfillLimit(j) / time.Second)
	later := now
	for {
		start := later
		later = 0
		nodes, overlap, when, err := c.permitted(j, time.Unix(start, 0), true)
		if err != nil {
			return false, false
		}
		start = when.Unix()
		end := max(start, now) + limit
		end = min(end, now+int64(forever/time.Second))
		c.within(j, nodes)
		nodes.and(c.up)
		all := nodes.clone()
		for i := range b.space {
			s := &b.space[i]
			if s.to > start && i+1 < len(b.space) && later == 0 && !c.subset(all, b.space[i+1].free, nodes, s.free) {
				later = s.to
			}
			if s.to <= start {
				continue
			}
			if s.from > end {
				break
			}
			nodes.and(s.free)
		}
		if overlap {
			if e := c.reservationEnd(start, step); e != 0 && e+1 < window && (later == 0 || e+1 < later) {
				later = e + 1
			}
		}
		if nodes.count() < j.NumNodes || j.required != nil && !nodes.holds(j.required) {
			if later != 0 {
				continue
			}
			return false, false
		}
		count()
		at, chosen, fits := c.willRun(j, nodes, now)
		if !fits {
			if later != 0 {
				continue
			}
			return false, false
		}
		at = max(at, start)
		set := newNodeSet(len(c.nodes))
		set.addAll(chosen)
		if at <= now && set.overlaps(c.completing) {
			at, later = now+1, 0
		}
		if at <= now {
			switch err := c.tryNow(j, nodes); err {
			case nil:
				return true, true
			case errReserved, errReservation:
				return false, false
			}
			later = 0
		}
		if later != 0 && at > later {
			continue
		}
		from, to := at/step*step, (at+limit)/step*step
		if at > now+int64(c.options.BackfillWindow/time.Second) {
			return false, false
		}
		if at > now && c.clashes(set, from, to) {
			later = at
			continue
		}
		j.planned = time.Unix(at, 0)
		c.reserveSlots(set, from, to, step)
		return false, true
	}
}

// subset reports whether the nodes that are left for a job in the next slot are all
// among those of this one: then it need not be tried there.
func (c *Cluster) subset(all, next, now, free nodeSet) bool {
	for i := range all {
		if all[i]&next[i]&^(now[i]&free[i]) != 0 {
			return false
		}
	}
	return true
}

// backfillLimit is for how long a job is planned.
func (c *Cluster) backfillLimit(j *job) time.Duration {
	most := j.part.MaxTime
	if most <= 0 {
		most = forever
	}
	if j.TimeLimit == slurmctl.Unlimited {
		return most
	}
	return min(j.TimeLimit, most)
}

// clashes reports whether nodes are others' at that time.
func (c *Cluster) clashes(set nodeSet, from, to int64) bool {
	for i := range c.backfill.space {
		if s := &c.backfill.space[i]; s.to > from && s.from < to && !s.free.holds(set) {
			return true
		}
	}
	return false
}

// reserveSlots keeps nodes for a time (_add_reservation).
func (c *Cluster) reserveSlots(set nodeSet, from, to, step int64) {
	b := &c.backfill
	from = max(from, b.space[0].from)
	to = max(to, from+step)
	cut := func(i int, at int64) { // slot i ends there, and another begins
		rest := slot{at, b.space[i].to, b.space[i].free.clone()}
		b.space[i].to = at
		b.space = slices.Insert(b.space, i+1, rest)
		b.slots++
	}
	i := 0
	for ; i < len(b.space); i++ {
		if b.space[i].to > from {
			cut(i, from)
			break
		}
		if b.space[i].to == from {
			break
		}
	}
	for i++; i < len(b.space); i++ {
		if to < b.space[i].to {
			cut(i, to)
		}
		b.space[i].free.minus(set)
		if to == b.space[i].to {
			return
		}
	}
}

// willRun tells when and where a job could run on some of these nodes if all active
// jobs lasted until their limits (_will_run_test of select/cons_common). Jobs are taken
// away in groups that end within a time that doubles, so the answer may be late.
func (c *Cluster) willRun(j *job, from nodeSet, now int64) (int64, []int, bool) {
	if nodes, ok := c.choose(j, &c.usage, from); ok {
		return now, nodes, true
	}
	future := &c.room.future
	c.usage.copyTo(future)
	window, end := int64(30), int64(0)
	all := c.byLimit()
	for i := 0; i < len(all); {
		var last *job
		more := false
		for ; i < len(all); i++ {
			one := all[i]
			if !slices.ContainsFunc(one.nodes, from.has) {
				continue
			}
			if end == 0 {
				e := one.end.Unix()
				end = e + window - e%window
			}
			last = one
			c.book(future, one, one.nodes, -1)
			if i+1 < len(all) && all[i+1].end.Unix() > end+window {
				more = true
				i++
				break
			}
		}
		if last == nil {
			return 0, nil, false
		}
		for window *= 2; more && all[i].end.Unix() > end+window; {
			window *= 2
		}
		if nodes, ok := c.choose(j, future, from); ok {
			at := last.end.Unix()
			if at <= now {
				at = max(at+int64(c.options.KillWait/time.Second), now+1)
			}
			return at, nodes, true
		}
	}
	return 0, nil, false
}
