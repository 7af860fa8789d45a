package slurmsim

import "time"

// loop models slurmctld's main loop, which looks once a second for work (_slurmctld_background of
// controller.c), and the main scheduler, which also runs whenever a job has left its nodes. The
// model looks only in seconds with work.
type loop struct {
	asked   bool          // a change requests the main scheduler
	last    time.Duration // when the loop last called it
	full    time.Duration // the same, for the whole queue
	ran     time.Duration // its last run, whatever caused it
	queued  bool          // its next run is on the agenda
	whole   bool          // the next run covers the whole queue
	limits  time.Duration // last check of time limits
	at      time.Duration // next look on the agenda; 0 if none
	version uint64        // of the cluster's state
	reasons uint64        // counts changes of reasons in meaning
	seen    uint64        // version seen by the last full pass
	quiet   time.Time     // until when a pass over the same state does nothing
	looked  time.Duration // last check for reservations that begin or end
}

// tick is how often slurmctld's loop looks.
const tick = time.Second

func (l *loop) start() { *l = loop{version: l.version + l.reasons + 1} }

// limitsEvery is how often slurmctld checks for jobs and reservations that have ended.
const limitsEvery = 30 * time.Second

// powerLook is how often Slurm looks for nodes to power down (power_save_interval).
const powerLook = time.Second

// kick requests the main scheduler at one of the loop's next looks.
func (c *Cluster) kick() {
	c.loop.asked = true
	c.wake()
}

// wake puts the loop's next useful look on the agenda.
func (c *Cluster) wake() {
	if c.down {
		return
	}
	l := &c.loop
	next := l.limits + limitsEvery // at the latest
	if next <= c.now {
		next = c.now + 1
	}
	sooner := func(t time.Duration) { next = min(next, t) }
	idle := true
	if l.asked {
		idle = false
		sooner(l.last + c.options.SchedDelay)
	}
	if len(c.pending) > 0 {
		idle = false
		sooner(l.full + c.options.SchedInterval)
	}
	if c.options.PowerSaving.on() {
		idle = false
		sooner(c.now + powerLook)
	}
	if idle && len(c.active) == 0 && len(c.reservations) == 0 {
		return
	}
	if t := c.reservations.nextTurn(c.Now(), c.now); t > 0 {
		sooner(t)
	}
	next = max(next, c.now+1)
	phase := c.options.LoopPhase
	next = (next - phase + tick - 1).Truncate(tick) + phase
	if l.at > 0 && l.at >= c.now && l.at <= next { // a look due now has not run yet
		return
	}
	l.at = next
	c.at(next, c.due.loop)
}

// due holds what the timers put on the agenda: the methods of Cluster below, made to functions once.
type due struct{ loop, schedule, backfill, save func() }

// loopNow looks unless the look was moved to another time.
func (c *Cluster) loopNow() {
	if l := &c.loop; l.at == c.now {
		l.at = 0
		c.turns.loop()
	}
}

// schedule requests a run of the main scheduler as soon as sched_min_interval allows.
func (c *Cluster) schedule() { c.request(false) }

func (c *Cluster) request(whole bool) {
	l := &c.loop
	l.whole = l.whole || whole
	if l.queued || c.down {
		return
	}
	l.queued = true
	then := c.now
	if l.ran > 0 {
		then = max(then, l.ran+c.options.SchedMinInterval)
	}
	c.at(then, c.due.schedule)
}

// scheduleNow runs the main scheduler.
func (c *Cluster) scheduleNow() {
	l := &c.loop
	l.queued = false
	if c.down {
		return
	}
	whole := l.whole
	l.whole = false
	c.turns.schedule(whole)
	l.ran = c.now
}

// backfillSoon puts the thread's next look that may find work on the agenda.
func (c *Cluster) backfillSoon() { c.backfillAt(c.now) }

func (c *Cluster) backfillAt(then time.Duration) {
	b := &c.backfill
	if c.options.BackfillInterval < 0 || c.down || len(c.pending) == 0 {
		return
	}
	next := max(b.rests, c.options.BackfillInterval+c.options.BackfillPhase)
	if then > next {
		next += (then - next + tick - 1).Truncate(tick)
	}
	if next <= c.now {
		next += tick
	}
	if b.at > c.now && b.at <= next {
		return
	}
	b.at = next
	c.at(next, c.due.backfill)
}

// backfillNow looks unless the look was moved to another time.
func (c *Cluster) backfillNow() {
	if b := &c.backfill; b.at == c.now {
		b.at = 0
		c.turns.backfill()
	}
}
