package slurmsim

import "time"

// entry is a future event.
type entry struct {
	at  time.Duration // since the cluster's start
	seq uint64
	run func()
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

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
	start  time.Time
	now    time.Duration // since the start
	skew   time.Duration // how far the clock was moved
	agenda agenda
	seq    uint64
	inside bool // a callback is running
}

// Now returns the time by the cluster's clock.
func (c *clock) Now() time.Time { return c.start.Add(c.now + c.skew) }

// second returns the current time as slurmctld writes it, to the second.
func (c *clock) second() time.Time { return c.Now().Truncate(time.Second) }

// Elapsed returns how much virtual time has passed since the cluster's start. It ignores changes of
// the clock.
func (c *clock) Elapsed() time.Duration { return c.now }

// At calls run once the current clock has advanced to then. Calls due at the same moment run in the
// order of the calls of At.
func (c *clock) At(then time.Time, run func()) { c.after(then.Sub(c.Now()), run) }

// After calls run after d.
func (c *clock) After(d time.Duration, run func()) { c.after(d, run) }

func (c *clock) after(d time.Duration, run func()) { c.at(c.now+max(d, 0), run) }

func (c *clock) at(then time.Duration, run func()) {
	c.seq++
	c.agenda.push(entry{max(then, c.now), c.seq, run})
}

// Step runs the next event on the agenda and reports whether there was one.
func (c *clock) Step() bool {
	if len(c.agenda) == 0 {
		return false
	}
	if c.inside {
		panic("slurmsim: a blocking call from within a callback: use Go")
	}
	e := c.agenda.pop()
	c.now = e.at
	c.inside = true
	e.run()
	c.inside = false
	return true
}

// Run lets virtual time pass until then by the clock.
func (c *clock) Run(until time.Time) { c.pass(until.Sub(c.Now())) }

// Sleep lets virtual time pass.
func (c *clock) Sleep(d time.Duration) { c.pass(d) }

func (c *clock) pass(d time.Duration) {
	until := c.now + max(d, 0)
	for len(c.agenda) > 0 && c.agenda[0].at <= until {
		c.Step()
	}
	c.now = max(c.now, until)
}

// Next returns when, by [Cluster.Elapsed], the next event on the agenda is due; false if there is
// none.
func (c *clock) Next() (time.Duration, bool) {
	if len(c.agenda) == 0 {
		return 0, false
	}
	return c.agenda[0].at, true
}
