package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// In virtual time a poll costs more than the second that it covers, and most polls show what the previous one
// showed. A simulation skips polls that would decide nothing. Every decision notes when it may differ although
// nothing happens (msg.Moments). So this file names no times, only what is under way.

// same does what [Core.Same] says.
func same(c *state.Core, begun, now time.Time) {
	pace.Same(c, begun, now)
	hold.Charge(c, begun)
}

// rested does what [Core.Rested] says.
func rested(c *state.Core, polled, configRead time.Time) {
	hold.Charge(c, polled)
	pace.Rested(c, polled)
	if !configRead.IsZero() {
		c.ConfigRead = configRead
	}
}

// still does what [Core.Still] says.
func still(c *state.Core) (until time.Time) {
	if c.Config.Observes() || c.Moves || unsettled(c) || unseen(c) {
		return time.Time{}
	}
	until = c.Pace.Begun.Add(longestRest)
	if !c.Next.IsZero() && c.Next.Before(until) {
		until = c.Next
	}
	return until
}

// noteQuiet notes whether a step heard of, or asked for, more than polls, plans, and measured delays.
func noteQuiet(c *state.Core, inputs []msg.Input) {
	for _, in := range inputs {
		switch in.(type) {
		case msg.Observation, msg.Planned, msg.Tick:
		default: // a time that it set was perhaps not compared yet
			c.Quiet.Acted = c.Now
			return
		}
	}
	for _, e := range c.Effects {
		switch e.(type) {
		case msg.Poll, msg.PollNodes, msg.Plan, msg.Resize, msg.SaveDelay:
		default:
			c.Quiet.Acted = c.Now
			return
		}
	}
}

// longestRest is the longest time without decisions.
const longestRest = 24 * time.Hour

// unsettled reports whether something is under way, or must be watched in every poll.
func unsettled(c *state.Core) bool {
	p, q := &c.Pace, &c.Quiet
	switch {
	case talk.Changing(c), c.Snapshot == nil, c.LastErr != nil, c.Planning, c.Looking != nil, c.Stopping, len(c.Work.Pending) > 0:
	case p.Polling, p.AtNodes, p.Urgent, p.Waiting >= 0, p.Pause > 0, !c.NextCycle.Equal(p.Begun.Add(c.Config.PollInterval)):
	case q.Refitted, !q.Acted.Before(p.Begun):
	case len(c.Intruders) > 0, len(c.Opened) > 0, len(c.Leaks) > 0, len(c.Unwilling) > 0, c.Power.On:
	default:
		for _, j := range c.Active {
			if moves(c, j) {
				return true
			}
		}
		return false
	}
	return true
}

// moves reports whether something about a job is under way, or must be watched in every poll.
func moves(c *state.Core, j *state.Job) bool {
	switch {
	case j.Busy, j.Unwritten, j.Ending, j.Kept != nil, follow.IsSuspended(j), j.Recount && j.Runs(), j.Configuring, j.Extend, j.Asked == nil, len(j.Expanders) > 0:
	case adopt.IsMalleable(j) && j.Runs():
	case j.Touched.After(c.Pace.Begun): // the poll does not show it
	default:
		return false
	}
	return true
}

// unseen reports whether some job in Slurm is between two states.
func unseen(c *state.Core) bool {
	for i := range c.Snapshot.Jobs {
		switch r := &c.Snapshot.Jobs[i]; r.State {
		case slurmctl.Completing, slurmctl.Suspended, slurmctl.Configuring:
			return true
		case slurmctl.Pending:
			if slurm.IsExpander(c, r) {
				return true
			}
		}
	}
	return false
}
