package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// In virtual time a poll costs more than the second that it covers, and most polls show what the previous one
// showed. [Core.Still] returns until when such a poll would decide nothing: a simulation skips it then. Still
// is cautious: if it is not certain, it says that polls are needed.

// quiet holds facts about the last cycle for [Core.Still].
type quiet struct {
	acted    time.Time // the last step that asked for more than polls and plans
	drifts   bool      // see Planned; a kept plan does not drift
	refitted bool      // the cycle replanned a running job from its time on
	putOff   bool      // a chore had no allowance
}

// note records the effects of a step.
func (q *quiet) note(now time.Time, effects []Effect) {
	for _, e := range effects {
		switch e.(type) {
		case Poll, PollNodes, Plan, Resize:
		default:
			q.acted = now
			return
		}
	}
}

// PutOff reports whether something waits for an allowance: the next caller may get it.
func (c *Core) PutOff() bool { return c.quiet.putOff }

// Same processes a poll that shows what the last one showed and has no consequences (see [Core.Still]): it
// began at `begun` and has ended now. A step must follow at once.
func (c *Core) Same(begun, now time.Time) {
	p, s := &c.pace, c.snapshot
	p.polling, p.begun, p.ended = false, begun, now
	c.nextCycle = begun.Add(c.cfg.PollInterval)
	for _, j := range c.active {
		if j.queuedAt.Equal(s.taken) {
			j.queuedAt = begun
		}
	}
	s.taken, s.nodesTaken, s.holders, s.eligibles = begun, time.Time{}, nil, nil
}

// Still returns until when a poll that shows what the last one showed decides nothing, except for postponed
// tasks, or the zero time if polls are needed as usual. It must be called right after a step.
func (c *Core) Still() (until time.Time) {
	if c.unsettled() {
		return time.Time{}
	}
	m := moments{after: c.pace.begun, until: c.pace.begun.Add(longestRest)}
	if len(c.refused) > 0 { // limits that block jobs are read again
		m.until = c.configRead.Add(ConfigFor)
	}
	for _, l := range c.last {
		if l != nil {
			m.at(time.Unix(l.Until(), 0))
		} else if c.quiet.drifts {
			return time.Time{}
		}
	}
	for _, j := range c.active {
		if !c.stillOf(&m, j) {
			return time.Time{}
		}
	}
	for i := range c.snapshot.jobs {
		if !c.stillIn(&m, &c.snapshot.jobs[i]) {
			return time.Time{}
		}
	}
	c.addTimes(&m)
	return m.until
}

// unsettled reports whether something is under way, apart from single jobs, or must be watched in every poll.
func (c *Core) unsettled() bool {
	p, q := &c.pace, &c.quiet
	switch {
	case c.changing(), c.snapshot == nil, c.lastErr != nil, c.planning, c.strategy.Plugin, c.looking != nil, c.stopping, len(c.work.pending) > 0:
	case p.polling, p.atNodes, p.urgent, p.waiting >= 0, p.pause > 0, !c.nextCycle.Equal(p.begun.Add(c.cfg.PollInterval)):
	case q.refitted, !q.acted.Before(p.begun):
	case len(c.intruders) > 0, len(c.leaks) > 0, len(c.unwilling) > 0, len(c.prices.kept) > 0, c.power.on, c.countsStand():
	default:
		return false
	}
	return true
}

// stillIn does what Still does, for one job in Slurm. It reports false if it is not certain.
func (c *Core) stillIn(m *moments, r *slurmctl.Job) bool {
	switch {
	case c.isComing(r.ID) && justSubmitted(c.snapshot, r), r.State == slurmctl.Pending && c.isExpander(r), r.State == slurmctl.Completing, r.State == slurmctl.Suspended, r.State == slurmctl.Configuring:
		return false
	case len(r.NodeList) > 0 && !r.EndTime.IsZero():
		if !r.EndTime.After(m.after) && c.owner(r.ID) == nil {
			return false // it may end any moment
		}
		m.at(r.EndTime)
	}
	return true
}

// addTimes adds the times of what is not about single jobs.
func (c *Core) addTimes(m *moments) {
	for _, in := range c.refused {
		m.at(in.since.Add(c.cfg.GiveUp))
		m.at(in.again)
	}
	for _, r := range c.reservations {
		m.at(r.Start)
		m.at(r.End)
	}
	if c.fits > 0 {
		m.at(time.Unix(c.fits, 0))
	}
	for _, read := range c.asked {
		m.at(read.again)
	}
	for _, read := range c.scripts {
		m.at(read.again)
	}
	for _, t := range c.suspect {
		m.at(t)
	}
	if len(c.delays.jobs) > 0 {
		m.at(c.delays.again)
	}
	for _, t := range c.work.retry {
		m.at(t)
	}
}

// moves reports whether something about a job is under way or due, or must be watched in every poll.
func (c *Core) moves(j *job, now time.Time) bool {
	due := j.due()
	switch {
	case j.busy, j.unwritten, j.ending, j.kept != nil, j.isSuspended(), j.recount, j.configuring, j.extend, j.asked == nil, len(j.expanders) > 0:
	case j.isMalleable() && j.runs(), j.State == row.Starting, j.State == row.Queued && c.ageing.Weight > 0:
	case j.touched.After(now), !due.IsZero() && !due.After(now):
	default:
		return false
	}
	return true
}

// stillOf does what Still does, for one job. It reports false if it is not certain.
func (c *Core) stillOf(m *moments, j *job) bool {
	if c.moves(j, m.after) {
		return false
	}
	margin, grace := c.cfg.Margin, c.cfg.Grace
	m.at(j.retryAt)
	for _, r := range j.refusedIn {
		m.at(r.until)
	}
	for _, r := range j.refusedAs {
		m.at(r.until)
	}
	m.at(j.holdRetry)
	m.at(j.Begin)
	m.at(j.Submitted.Add(mirrorAge))
	m.at(j.record.EndTime)
	for _, step := range j.plan[min(max(j.Step-1, 0), len(j.plan)):] {
		start, end := time.Unix(step.start, 0), time.Unix(step.end, 0)
		m.at(start)
		m.at(start.Add(-soon))
		m.at(start.Add(-c.cfg.HoldAhead))
		if j.mode.readiesLinks {
			m.at(start.Add(-linkAhead))
		}
		m.at(end)
		m.at(end.Add(margin))
		m.at(end.Add(grace))
		m.at(end.Add(2 * grace))
		m.at(end.Add(max(grace, time.Minute)))
	}
	if j.State == row.Running {
		over := time.Unix(max(j.expected(), j.overdue), 0)
		m.at(over)
		m.at(over.Add(grace))
		m.at(over.Add(2 * grace))
	}
	if j.State == row.Queued && len(j.plan) > 0 {
		start := time.Unix(j.plan[0].start, 0)
		m.at(start.Add(-c.cfg.HoldAhead))
		m.at(start.Add(-time.Minute)) // it is near now
		m.drift(start.Add(mirrorDelay), j.record.StartTime, mirrorDelay*2/3)
	}
	c.addHoldTimes(m, j)
	return true
}

// addHoldTimes adds the times from which the holds of a job are too far from the wanted ones.
func (c *Core) addHoldTimes(m *moments, j *job) {
	for _, h := range c.holdsOf(j, c.now.Unix()) {
		if r, ok := c.holdFor(j, h.step); ok {
			start := time.Unix(h.start, 0)
			m.drift(start, r.Start, earlier*time.Second)
			if over := r.End.Sub(time.Unix(h.end, 0)) - time.Minute; over > 0 {
				early := time.Duration((int64(over/time.Second)+1)/2) * time.Second // the slack is in whole seconds
				m.at(start.Add(-10 * early))
			}
		}
	}
}

// moments collects times from which a decision may differ.
type moments struct {
	after time.Time // earlier times have already had their effect
	until time.Time // the first time so far
}

// at adds a moment, and the second after it: most are compared in whole seconds.
func (m *moments) at(t time.Time) {
	if t.IsZero() {
		return
	}
	if !t.After(m.after) {
		if t = t.Add(time.Second); !t.After(m.after) {
			return
		}
	}
	if t.Before(m.until) {
		m.until = t
	}
}

// drift adds the time when a value in Slurm is too far from the wanted one for the time that is left then (see
// slack).
func (m *moments) drift(want, written time.Time, least time.Duration) {
	if off := want.Sub(written).Abs(); off > least && off < longestHold*time.Second {
		m.at(want.Add(-10 * off))
	}
}

// longestRest is the longest time without decisions.
const longestRest = 24 * time.Hour

// ConfigRead returns when Slurm's configuration was last read.
func (c *Core) ConfigRead() time.Time { return c.configRead }

// Rested sets when the configuration would have been last read if no polls had been skipped.
func (c *Core) Rested(configRead time.Time) { c.configRead = configRead }

// Rest announces that the next step comes at `until` or earlier: the shell may delay what [Wake] asked for, up
// to [Core.Still].
func (c *Core) Rest(until time.Time) { c.wait = max(c.wait, until.Sub(c.tick)) }
