package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// loopTurn is one look of the loop.
func loopTurn(c *Cluster) {
	if c.down {
		return
	}
	l := &c.loop
	if c.now-l.limits >= limitsEvery {
		l.limits = c.now.Truncate(limitsEvery)
		endOverdue(c)
	}
	powerTurn(c)
	noticeReservations(c)
	switch {
	case c.now-l.full >= c.options.SchedInterval:
		l.full, l.last, l.asked = c.now, c.now, false
		if restless(c) {
			c.request(true)
		}
	case l.asked && c.now-l.last >= c.options.SchedDelay:
		l.last, l.asked = c.now, false
		c.request(false)
	}
	c.wake()
}

// restless reports whether a pass over the whole queue may find something new.
func restless(c *Cluster) bool {
	l := &c.loop
	if len(c.pending) == 0 {
		return false
	}
	return l.version != l.seen || c.options.MultifactorAge > 0 || !c.Now().Before(l.quiet)
}

// endOverdue ends jobs that are past their time limit or their reservation's end.
func endOverdue(c *Cluster) {
	if c.options.PowerSaving.on() {
		startConfigured(c)
	}
	now := c.Now()
	if all := c.byLimit(); len(c.reservations) == 0 && (len(all) == 0 || all[0].ends > now.Unix()) {
		return
	}
	for _, j := range slices.Clone(c.active) {
		if j.State != slurmctl.Running {
			continue
		}
		r := c.reservations.named(j.Reservation)
		if !j.EndTime.IsZero() && !now.Before(j.EndTime) || r != nil && !r.has("FLEX") && now.After(r.End) {
			finish(c, j, slurmctl.TimedOut)
		}
	}
	dropReservations(c)
}

// noticeReservations runs the scheduler if a reservation has begun or ended.
func noticeReservations(c *Cluster) {
	if len(c.reservations) == 0 || c.now/resvEvery == c.loop.looked/resvEvery {
		return
	}
	c.loop.looked = c.now
	for _, r := range c.reservations {
		state := 0
		switch now := c.Now(); {
		case !now.Before(r.End):
			state = 2
		case !now.Before(r.Start):
			state = 1
		}
		if state != r.state {
			r.state = state
			c.loop.asked = true
			c.changed()
		}
	}
}
