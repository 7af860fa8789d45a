package slurmsim

import "time"

// The virtual clock: what is to happen is on an agenda, in the order of its times
// and, where these are equal, in the order in which it was put there. Nothing else
// has a say, so that equal runs are equal to the byte, on any number of processors.

type entry struct {
	at  time.Duration // since the cluster's start
	seq uint64
	run func()
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// agenda is a binary heap.
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

// Now is the time by the cluster's clock.
func (c *Cluster) Now() time.Time { return c.options.Start.Add(c.now + c.skew) }

// second is now as slurmctld writes it down.
func (c *Cluster) second() time.Time { return c.Now().Truncate(time.Second) }

// Elapsed is how much virtual time has passed since the cluster's start, whatever was
// done to its clock.
func (c *Cluster) Elapsed() time.Duration { return c.now }

// StepClock sets the clock forth or back, as an administrator or an NTP daemon may:
// what sleeps is not woken by it.
func (c *Cluster) StepClock(d time.Duration) {
	c.skew += d
	c.changed()
	c.wake()
}

// At has run called once the clock's present reading has advanced to then; what is
// due at the same moment is called in the order of the calls of At.
func (c *Cluster) At(then time.Time, run func()) { c.after(then.Sub(c.Now()), run) }

// After has run called after d.
func (c *Cluster) After(d time.Duration, run func()) { c.after(d, run) }

func (c *Cluster) after(d time.Duration, run func()) { c.at(c.now+max(d, 0), run) }

func (c *Cluster) at(then time.Duration, run func()) {
	c.seq++
	c.agenda.push(entry{max(then, c.now), c.seq, run})
}

// Step does the next thing on the agenda and reports whether there was one.
func (c *Cluster) Step() bool {
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
func (c *Cluster) Run(until time.Time) { c.pass(until.Sub(c.Now())) }

// Sleep lets virtual time pass.
func (c *Cluster) Sleep(d time.Duration) { c.pass(d) }

func (c *Cluster) pass(d time.Duration) {
	until := c.now + max(d, 0)
	for len(c.agenda) > 0 && c.agenda[0].at <= until {
		c.Step()
	}
	c.now = max(c.now, until)
}
