package act

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Act carries out what is due, at most one action per job at a time. It handles jobs that
// give nodes back first, so that jobs waiting for these nodes need no second look.
func Act(c *state.Core, s *state.Snapshot) {
	now := c.Now
	for _, shrinking := range []bool{true, false} {
		for j := range plan.Each(c, c.Active) {
			if j.Busy || j.Ending || !c.Due(now, j.RetryAt) || shrinks(c, j) != shrinking {
				continue
			}
			if !c.Work.Room() {
				return // act again when something has ended
			}
			ActOn(c, s, j, now)
		}
	}
}

func shrinks(c *state.Core, j *state.Job) bool {
	next := j.Next()
	return j.State == row.Waiting && next != nil && len(next.Nodes) < len(j.Nodes())
}

func ActOn(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) {
	if actFirst(c, s, j, now) {
		return
	}
	switch j.State {
	case row.Queued:
		if mayStart(c, j, now) {
			start(c, s, j)
		}
	case row.Starting:
		c.Moves = true
		if c.Passed(now, j.Touched.Add(adopt.StartWait)) && j.Record.State == slurmctl.Pending || follow.KeptStart(c, s, &j.Record, j.Touched) {
			follow.Park(c, j, &j.Record, row.Queued)
		} else {
			doubtCounts(c, s, j, now)
		}
	case row.Waiting:
		transition(c, s, j, now)
	case row.Running:
		repair(c, s, j)
		if !j.Busy {
			watchOverrun(c, j, now)
		}
	}
	if j.Runs() && !j.Busy {
		extendLimits(c, s, j)
	}
}

// mayStart reports whether the time of a queued job has come. Jobs kept back are replanned, not started.
func mayStart(c *state.Core, j *state.Job, now time.Time) bool {
	return j.Kept == nil && len(j.Plan) > 0 && !c.Drained() && c.DueSecond(now.Unix(), j.Plan[0].Start)
}

// actFirst carries out what comes before a job's next step. It reports whether the job must not do anything
// else now.
func actFirst(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) bool {
	if j.Unwritten {
		if WriteRequest(c, j); j.Busy {
			return true
		}
	}
	if r, attached := attached(c, s, j); attached && j.Runs() {
		detach(c, j, r)
		return true
	}
	switch {
	case follow.IsSuspended(j):
		return true
	case j.Runs() && j.Recount:
		follow.RecountSuspension(c, j)
		return true
	case j.Runs() && j.Asked == nil && c.Facts.StepManagers && j.Mode.Resizes:
		j.WaitsFor(state.Because(state.WhyRequestUnread))
		return true
	}
	return j.Runs() && carryOffer(c, s, j, now)
}

// attached returns a Slurm job of j that runs inside one of our holds. Slurm would kill the
// job at the hold's end, and the sidecar could not give up the hold. One that slipped in is cancelled instead.
func attached(c *state.Core, s *state.Snapshot, j *state.Job) (slurmctl.Job, bool) {
	if j.Mode.StaysInHold {
		return slurmctl.Job{}, false // the job must stay in the hold, see Start
	}
	for _, p := range j.Held {
		r := s.ByID[p.ID]
		if p.ID == j.Record.ID {
			r = &j.Record // includes changes made since the snapshot
		} else if j.Touched.After(s.Taken) {
			continue
		}
		if r == nil || r.State != slurmctl.Running && r.State != slurmctl.Suspended {
			continue
		}
		if _, _, ours := hold.HoldIn(c, r.Reservation); ours && c.Intruders[r.ID].Job == nil {
			return *r, true
		}
	}
	return slurmctl.Job{}, false
}

// detach moves a running job out of the hold in which it started. It then gives up the hold,
// because the job itself has the nodes. If the hold belongs to another job, detach keeps it.
func detach(c *state.Core, j *state.Job, r slurmctl.Job) {
	name, own, _ := hold.HoldIn(c, r.Reservation)
	c.Do(j, "detach", name, state.KindDetach, msg.Detach{r.ID, name, own.Job == j.BaseID(), j.Reservation}, state.Args{})
}

// SettleDetach handles the outcome of moving a job out of its hold.
func SettleDetach(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err != nil {
		return
	}
	do := state.CommandOf[msg.Detach](p)
	if j.Record.ID == do.Job {
		j.MovedTo(do.Inside)
	}
	if do.GiveUp {
		hold.ForgetHold(c, do.Hold)
	}
}

// watchOverrun handles a job that keeps a step longer than its profile says. The sidecar
// tolerates the overrun while no other job was promised its nodes. If another job was, the
// sidecar applies the site's policy after twice the grace.
func watchOverrun(c *state.Core, j *state.Job, now time.Time) {
	due, late := hold.Due(c, j), hold.Overrun(c, j, now)
	if !c.Reached(now, due.Add(c.Config.Grace)) {
		return
	}
	hold.Lapse(c, j, now)
	ran := hasRun(c, j, due.Add(c.Config.Grace))
	if ran && !j.Warned {
		j.Warn()
		c.Event(j, "overrun", map[string]any{"step": j.Step, "seconds": int(late.Seconds())})
		c.LogJob(j).Warn("the step lasts longer than the profile says; its nodes may be taken back once others need them")
	}
	if ran && !j.Signalled && warn(c, j) {
		j.Signal()
		return
	}
	rival := rival(c, j, now)
	if rival == nil || !c.Reached(now, due.Add(2*c.Config.Grace)) {
		return
	}
	detail := map[string]any{"step": j.Step, "rival": rival.SlurmID, "policy": c.Config.Overrun}
	shrinks := !j.Last() && j.Profile[j.Step].Nodes < j.Profile[j.Step-1].Nodes
	switch {
	case c.Config.Overrun == "shrink" && shrinks && j.Mode.Resizes:
		c.Event(j, "enforced", detail)
		c.LogJob(j).Warn("ending the step: its nodes were promised to another job")
		EndStep(c, j, now)
	case c.Config.Overrun == "cancel" || j.Last():
		c.Event(j, "enforced", detail)
		c.LogJob(j).Warn("cancelling the job: its nodes were promised to another job")
		c.Do(j, "cancel", "overrun", state.KindEnforce, msg.Cancel{Jobs: []slurmctl.JobID{j.Record.ID}}, state.Args{})
	}
}

// hasRun reports whether a job ran at a time. In its last step, it may have ended since an earlier poll.
func hasRun(c *state.Core, j *state.Job, at time.Time) bool {
	if !j.Last() || !c.Snapshot.Taken.Before(at) {
		return true
	}
	c.At(c.Now.Add(1)) // look at the next poll
	return false
}

// SettleEnforce handles the outcome of cancelling a job for another job.
func SettleEnforce(c *state.Core, j *state.Job, _ *state.Pending, o msg.Outcome) {
	j.Cancelled(o.Err == nil)
}

// rival returns a job that waits for a promised growth on nodes that j still has.
func rival(c *state.Core, j *state.Job, now time.Time) *state.Job {
	for _, other := range c.Active {
		if other == j || other.State != row.Waiting || other.Kept != nil || follow.IsSuspended(other) {
			continue
		}
		if next := other.Next(); next != nil && len(msg.Common(next.Nodes, refit.Own(j))) > 0 && c.ReachedSecond(now.Unix(), next.Start) { // lent nodes are demanded back elsewhere
			return other
		}
	}
	return nil
}
