package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// loopTurn is one look of the loop.
func loopTurn(c *Cluster) {
	if c.Down {
		return
	}
	l := &c.Loop
	if c.Moment-l.Limits >= limitsEvery {
		l.Limits = c.Moment.Truncate(limitsEvery)
		endOverdue(c)
	}
	powerTurn(c)
	noticeReservations(c)
	switch {
	case c.Moment-l.Full >= c.options.SchedInterval:
		l.Full, l.Last, l.Asked = c.Moment, c.Moment, false
		if restless(c) {
			c.request(true)
		}
	case l.Asked && c.Moment-l.Last >= c.options.SchedDelay:
		l.Last, l.Asked = c.Moment, false
		c.request(false)
	}
	c.wake()
}

// restless reports whether a pass over the whole queue may find something new.
func restless(c *Cluster) bool {
	l := &c.Loop
	if len(c.Pending) == 0 {
		return false
	}
	return l.Version != l.Seen || c.options.MultifactorAge > 0 || !c.Now().Before(l.Quiet)
}

// endOverdue ends jobs that are past their time limit or their reservation's end.
func endOverdue(c *Cluster) {
	if c.options.PowerSaving.on() {
		startConfigured(c)
	}
	now := c.Now()
	if all := c.byLimit(); len(c.Reservations) == 0 && (len(all) == 0 || all[0].Ends > now.Unix()) {
		return
	}
	for _, j := range slices.Clone(c.Active) {
		if j.State != slurmctl.Running {
			continue
		}
		r := c.Reservations.of(j.Reservation)
		if !j.EndTime.IsZero() && !now.Before(j.EndTime) || r != nil && !r.has("FLEX") && now.After(r.End) {
			finish(c, j, slurmctl.TimedOut)
		}
	}
	dropReservations(c)
}

// noticeReservations runs the scheduler if a reservation has begun or ended.
func noticeReservations(c *Cluster) {
	if len(c.Reservations) == 0 || c.Moment/resvEvery == c.Loop.Looked/resvEvery {
		return
	}
	c.Loop.Looked = c.Moment
	for _, r := range c.Reservations {
		state := 0
		switch now := c.Now(); {
		case !now.Before(r.End):
			state = 2
		case !now.Before(r.Start):
			state = 1
		}
		if state != r.State {
			r.State = state
			c.Loop.Asked = true
			c.changed()
		}
	}
}
