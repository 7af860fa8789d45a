package slurmsim

import "time"

// entry is a future event.
type entry struct {
	At  time.Duration // since the cluster's start
	Seq uint64
	Do  Action
}

// Action is something to do at a time. In a checkpoint, it must be plain data.
type Action interface{ Act(*Cluster) }

// callback is an action that cannot be written: no checkpoint is possible while it is on the agenda.
type callback func()

// Act implements Action.
func (run callback) Act(*Cluster) { run() }

func (e *entry) before(o *entry) bool { return e.At < o.At || e.At == o.At && e.Seq < o.Seq }

// agenda lists future events in the order of their times and, at equal times, in the order of
// insertion. Nothing else influences the order, so equal runs are equal to the byte, on any number
// of processors. It is a binary heap.
type agenda []entry

func (a *agenda) push(e entry) {
	h := append(*a, e)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*a = h
}

func (a *agenda) pop() entry {
	h := *a
	first := h[0]
	last := len(h) - 1
	h[0], h[last] = h[last], entry{}
	h = h[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&h[i]) {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	*a = h
	return first
}

// clock is the virtual clock with its agenda.
type clock struct {
	start  time.Time     `codec:"-"`
	Moment time.Duration // since the start
	Skew   time.Duration // how far the clock was moved
	Agenda agenda
	Seq    uint64
	inside bool     `codec:"-"` // a callback is running
	whole  *Cluster `codec:"-"` // that the clock is of
}

// Now returns the time by the cluster's clock.
func (c *clock) Now() time.Time { return c.start.Add(c.Moment + c.Skew) }

// second returns the current time as slurmctld writes it, to the second.
func (c *clock) second() time.Time { return c.Now().Truncate(time.Second) }

// Elapsed returns how much virtual time has passed since the cluster's start. It ignores changes of
// the clock.
func (c *clock) Elapsed() time.Duration { return c.Moment }

// At calls run once the current clock has advanced to then. Calls due at the same moment run in the
// order of the calls of At.
func (c *clock) At(then time.Time, run func()) { c.After(then.Sub(c.Now()), run) }

// After calls run after d.
func (c *clock) After(d time.Duration, run func()) { c.Later(d, callback(run)) }

// Later does what After does, with an action.
func (c *clock) Later(d time.Duration, do Action) { c.at(c.Moment+max(d, 0), do) }

func (c *clock) at(then time.Duration, do Action) {
	c.Seq++
	c.Agenda.push(entry{max(then, c.Moment), c.Seq, do})
}

// Step runs the next event on the agenda and reports whether there was one.
func (c *clock) Step() bool {
	if len(c.Agenda) == 0 {
		return false
	}
	if c.inside {
		panic("slurmsim: a blocking call from within a callback: use Go")
	}
	e := c.Agenda.pop()
	c.Moment = e.At
	c.inside = true
	e.Do.Act(c.whole)
	c.inside = false
	return true
}

// Run lets virtual time pass until then by the clock.
func (c *clock) Run(until time.Time) { c.pass(until.Sub(c.Now())) }

// Sleep lets virtual time pass.
func (c *clock) Sleep(d time.Duration) { c.pass(d) }

func (c *clock) pass(d time.Duration) {
	until := c.Moment + max(d, 0)
	for len(c.Agenda) > 0 && c.Agenda[0].At <= until {
		c.Step()
	}
	c.Moment = max(c.Moment, until)
}

// Next returns when, by [Cluster.Elapsed], the next event on the agenda is due; false if there is
// none.
func (c *clock) Next() (time.Duration, bool) {
	if len(c.Agenda) == 0 {
		return 0, false
	}
	return c.Agenda[0].At, true
}
