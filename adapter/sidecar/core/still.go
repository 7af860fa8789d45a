package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// same processes a poll that shows what the last one showed and has no consequences (see [still]): it
// began at `begun` and has ended now. A step must follow at once.
func same(c *state.Core, begun, now time.Time) {
	p, s := &c.Pace, c.Snapshot
	p.Polling, p.Begun, p.Ended = false, begun, now
	c.NextCycle = begun.Add(c.Config.PollInterval)
	for _, j := range c.Active {
		j.StillQueued(s.Taken, begun)
	}
	s.Taken, s.NodesTaken, s.Holders, s.Eligibles = begun, time.Time{}, nil, nil
}

// still returns until when a poll that shows what the last one showed decides nothing, except for postponed
// tasks, or the zero time if polls are needed as usual. It must be called right after a step.
func still(c *state.Core) (until time.Time) {
	if unsettled(c) {
		return time.Time{}
	}
	m := moments{after: c.Pace.Begun, until: c.Pace.Begun.Add(longestRest)}
	if len(c.Refused) > 0 { // limits that block jobs are read again
		m.until = c.ConfigRead.Add(msg.ConfigFor)
	}
	for _, l := range c.Last {
		if l != nil {
			m.at(time.Unix(l.Until(), 0))
		} else if c.Quiet.Drifts {
			return time.Time{}
		}
	}
	for _, j := range c.Active {
		if !stillOf(c, &m, j) {
			return time.Time{}
		}
	}
	for i := range c.Snapshot.Jobs {
		if !stillIn(c, &m, &c.Snapshot.Jobs[i]) {
			return time.Time{}
		}
	}
	addTimes(c, &m)
	return m.until
}

// unsettled reports whether something is under way, apart from single jobs, or must be watched in every poll.
func unsettled(c *state.Core) bool {
	p, q := &c.Pace, &c.Quiet
	switch {
	case talk.Changing(c), c.Snapshot == nil, c.LastErr != nil, c.Planning, c.Strategy.Plugin, c.Looking != nil, c.Stopping, len(c.Work.Pending) > 0:
	case p.Polling, p.AtNodes, p.Urgent, p.Waiting >= 0, p.Pause > 0, !c.NextCycle.Equal(p.Begun.Add(c.Config.PollInterval)):
	case q.Refitted, !q.Acted.Before(p.Begun):
	case len(c.Intruders) > 0, len(c.Leaks) > 0, len(c.Unwilling) > 0, len(c.Prices.Kept) > 0, c.Power.On, state.CountsStand(c):
	default:
		return false
	}
	return true
}

// stillIn does what Still does, for one job in Slurm. It reports false if it is not certain.
func stillIn(c *state.Core, m *moments, r *slurmctl.Job) bool {
	switch {
	case plan.IsComing(c, r.ID) && plan.JustSubmitted(c.Snapshot, r), r.State == slurmctl.Pending && plan.IsExpander(c, r), r.State == slurmctl.Completing, r.State == slurmctl.Suspended, r.State == slurmctl.Configuring:
		return false
	case len(r.NodeList) > 0 && !r.EndTime.IsZero():
		if !r.EndTime.After(m.after) && c.Owner(r.ID) == nil {
			return false // it may end any moment
		}
		m.at(r.EndTime)
	}
	if plan.IsComing(c, r.ID) {
		m.at(r.SubmitTime.Add(max(c.Config.GiveUp, adopt.LeastForLinks))) // then adopt refuses an incomplete chain
	}
	return true
}

// addTimes adds the times of what is not about single jobs.
func addTimes(c *state.Core, m *moments) {
	for _, in := range c.Refused {
		m.at(in.Since.Add(c.Config.GiveUp))
		m.at(in.Again)
	}
	for _, r := range c.Reservations {
		m.at(r.Start)
		m.at(r.End)
	}
	if c.Fits > 0 {
		m.at(time.Unix(c.Fits, 0))
	}
	for _, read := range c.Asked {
		m.at(read.Again)
	}
	for _, read := range c.Scripts {
		m.at(read.Again)
	}
	for _, t := range c.Suspect {
		m.at(t)
	}
	if len(c.Delays.Jobs) > 0 {
		m.at(c.Delays.Again)
	}
	for _, t := range c.Work.Retry {
		m.at(t)
	}
}

// moves reports whether something about a job is under way or due, or must be watched in every poll.
func moves(c *state.Core, j *state.Job, now time.Time) bool {
	due := j.Due()
	switch {
	case j.Busy, j.Unwritten, j.Ending, j.Kept != nil, follow.IsSuspended(j), j.Recount, j.Configuring, j.Extend, j.Asked == nil, len(j.Expanders) > 0:
	case adopt.IsMalleable(j) && j.Runs(), j.State == row.Starting, j.State == row.Queued && c.Ageing.Weight > 0:
	case j.Touched.After(now), !due.IsZero() && !due.After(now):
	default:
		return false
	}
	return true
}

// stillOf does what Still does, for one job. It reports false if it is not certain.
func stillOf(c *state.Core, m *moments, j *state.Job) bool {
	if moves(c, j, m.after) {
		return false
	}
	margin, grace := c.Config.Margin, c.Config.Grace
	m.at(j.RetryAt)
	for _, r := range j.RefusedIn {
		m.at(r.Until)
	}
	for _, r := range j.RefusedAs {
		m.at(r.Until)
	}
	m.at(j.HoldRetry)
	m.at(j.Begin)
	m.at(j.Submitted.Add(plan.MirrorAge))
	m.at(j.Record.EndTime)
	for _, step := range j.Plan[min(max(j.Step-1, 0), len(j.Plan)):] {
		start, end := time.Unix(step.Start, 0), time.Unix(step.End, 0)
		m.at(start)
		m.at(start.Add(-hold.Soon))
		m.at(start.Add(-c.Config.HoldAhead))
		if j.Mode.ReadiesLinks {
			m.at(start.Add(-act.LinkAhead))
		}
		m.at(end)
		m.at(end.Add(margin))
		m.at(end.Add(grace))
		m.at(end.Add(2 * grace))
		m.at(end.Add(max(grace, time.Minute)))
	}
	if j.State == row.Running {
		over := time.Unix(max(j.Expected(), j.Overdue), 0)
		m.at(over)
		m.at(over.Add(grace))
		m.at(over.Add(2 * grace))
	}
	if j.State == row.Queued && len(j.Plan) > 0 {
		start := time.Unix(j.Plan[0].Start, 0)
		m.at(start.Add(-c.Config.HoldAhead))
		m.at(start.Add(-time.Minute)) // it is near now
		m.drift(start.Add(plan.MirrorDelay), j.Record.StartTime, plan.MirrorDelay*2/3)
	}
	addHoldTimes(c, m, j)
	return true
}

// addHoldTimes adds the times from which the holds of a job are too far from the wanted ones.
func addHoldTimes(c *state.Core, m *moments, j *state.Job) {
	for _, h := range hold.HoldsOf(c, j, c.Now.Unix()) {
		if r, ok := hold.HoldFor(c, j, h.Step); ok {
			start := time.Unix(h.Start, 0)
			m.drift(start, r.Start, msg.Earlier*time.Second)
			if over := r.End.Sub(time.Unix(h.End, 0)) - time.Minute; over > 0 {
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
	if off := want.Sub(written).Abs(); off > least && off < plan.LongestHold*time.Second {
		m.at(want.Add(-10 * off))
	}
}

// longestRest is the longest time without decisions.
const longestRest = 24 * time.Hour
