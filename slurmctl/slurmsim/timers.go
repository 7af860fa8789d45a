package slurmsim

import "time"

// loop models slurmctld's main loop, which looks once a second for work (_slurmctld_background of
// controller.c), and the main scheduler, which also runs whenever a job has left its nodes. The
// model looks only in seconds with work.
type loop struct {
	Asked   bool          // a change requests the main scheduler
	Last    time.Duration // when the loop last called it
	Full    time.Duration // the same, for the whole queue
	Ran     time.Duration // its last run, whatever caused it
	Queued  bool          // its next run is on the agenda
	Whole   bool          // the next run covers the whole queue
	Limits  time.Duration // last check of time limits
	At      time.Duration // next look on the agenda; 0 if none
	Version uint64        // of the cluster's state
	Reasons uint64        // counts changes of reasons in meaning
	Seen    uint64        // version seen by the last full pass
	Quiet   time.Time     // until when a pass over the same state does nothing
	Looked  time.Duration // last check for reservations that begin or end
}

// tick is how often slurmctld's loop looks.
const tick = time.Second

func (l *loop) start() { *l = loop{Version: l.Version + l.Reasons + 1} }

// limitsEvery is how often slurmctld checks for jobs and reservations that have ended.
const limitsEvery = 30 * time.Second

// powerLook is how often Slurm looks for nodes to power down (power_save_interval).
const powerLook = time.Second

// kick requests the main scheduler at one of the loop's next looks.
func (c *Cluster) kick() {
	c.Loop.Asked = true
	c.wake()
}

// wake puts the loop's next useful look on the agenda.
func (c *Cluster) wake() {
	if c.Down {
		return
	}
	l := &c.Loop
	next := l.Limits + limitsEvery // at the latest
	if next <= c.Moment {
		next = c.Moment + 1
	}
	sooner := func(t time.Duration) { next = min(next, t) }
	idle := true
	if l.Asked {
		idle = false
		sooner(l.Last + c.options.SchedDelay)
	}
	if len(c.Pending) > 0 {
		idle = false
		sooner(l.Full + c.options.SchedInterval)
	}
	if c.options.PowerSaving.on() {
		idle = false
		sooner(c.Moment + powerLook)
	}
	if idle && len(c.Active) == 0 && len(c.Reservations) == 0 {
		return
	}
	if t := c.Reservations.nextTurn(c.Now(), c.Moment); t > 0 {
		sooner(t)
	}
	next = max(next, c.Moment+1)
	phase := c.options.LoopPhase
	next = (next - phase + tick - 1).Truncate(tick) + phase
	if l.At > 0 && l.At >= c.Moment && l.At <= next { // a look due now has not run yet
		return
	}
	l.At = next
	c.at(next, looks)
}

// loopNow looks unless the look was moved to another time.
func (c *Cluster) loopNow() {
	if l := &c.Loop; l.At == c.Moment {
		l.At = 0
		c.turns.loop()
	}
}

// request has the main scheduler run as soon as sched_min_interval allows.
func (c *Cluster) request(whole bool) {
	l := &c.Loop
	l.Whole = l.Whole || whole
	if l.Queued || c.Down {
		return
	}
	l.Queued = true
	then := c.Moment
	if l.Ran > 0 {
		then = max(then, l.Ran+c.options.SchedMinInterval)
	}
	c.at(then, schedules)
}

// scheduleNow runs the main scheduler.
func (c *Cluster) scheduleNow() {
	l := &c.Loop
	l.Queued = false
	if c.Down {
		return
	}
	whole := l.Whole
	l.Whole = false
	c.turns.schedule(whole)
	l.Ran = c.Moment
}

// backfillAt puts the thread's first look from then on that may find work on the agenda.
func (c *Cluster) backfillAt(then time.Duration) {
	b := &c.Backfill
	if c.options.BackfillInterval < 0 || c.Down || len(c.Pending) == 0 {
		return
	}
	next := max(b.Rests, c.options.BackfillInterval+c.options.BackfillPhase)
	if then > next {
		next += (then - next + tick - 1).Truncate(tick)
	}
	if next <= c.Moment {
		next += tick
	}
	if b.At > c.Moment && b.At <= next {
		return
	}
	b.At = next
	c.at(next, backfills)
}

// backfillNow looks unless the look was moved to another time.
func (c *Cluster) backfillNow() {
	if b := &c.Backfill; b.At == c.Moment {
		b.At = 0
		c.turns.backfill()
	}
}
