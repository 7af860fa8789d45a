package act

import (
	"cmp"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Mirror writes the plan into Slurm. So users see planned starts in squeue, and Slurm keeps them if the
// sidecar dies. It writes StartTime, a little late since the sidecar releases the job at the second itself,
// and the hold to start in. For a chain that has begun, it writes all coming steps. It does what the allowance
// permits, and continues later where it stopped.
func Mirror(c *state.Core, s *state.Snapshot) {
	now := c.Now
	for range c.Active {
		c.Mirrored++
		if c.Mirrored >= len(c.Active) {
			c.Mirrored = 0
		}
		j := c.Active[c.Mirrored]
		plan.NoteHandling(c, j)
		if c.Reached(now, j.Submitted) && !c.Reached(now, j.Submitted.Add(plan.MirrorAge)) || j.Busy || j.Touched.After(s.Taken) || !c.Due(now, j.RetryAt) {
			continue
		}
		done := true
		switch {
		case j.State == row.Queued:
			done = mirrorStep(c, j, &j.Record, 1, now)
		case j.Mode.StepsAreJobs && j.Runs():
			done = mirrorLinks(c, s, j, now)
		}
		if !done {
			c.Mirrored-- // comes first the next time
			return
		}
	}
}

// mirrorLinks does what mirror does, for the coming steps of a chain. It reports false if some must wait.
func mirrorLinks(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) bool {
	done := true
	for k := j.Step; k < len(j.Chain) && done && !j.Busy; k++ {
		r := follow.In(j, s, j.Chain[k])
		switch {
		case r == nil, r.ID == j.LetGo, r.ID == j.Readied && j.State == row.Waiting:
		case k == j.Step && linkIsNear(c, j, now):
			done = readyLink(c, s, j, r)
		default:
			done = mirrorStep(c, j, r, k+1, now)
		}
	}
	return done
}

// LinkAhead is how long before its planned start a chain's next link is readied.
const LinkAhead = 30 * time.Second

// linkIsNear reports whether a chain's next link will begin soon and has a hold.
func linkIsNear(c *state.Core, j *state.Job, now time.Time) bool {
	if j.State != row.Running || !j.Mode.ReadiesLinks || follow.IsSuspended(j) || j.Next() == nil {
		return false
	}
	_, held := hold.HoldFor(c, j, j.Step+1)
	return held && c.Reached(now, time.Unix(j.Next().Start, 0).Add(-LinkAhead))
}

// readyLink releases a chain's next link before the current one has ended. Its dependency keeps it until then,
// and its hold until the hold begins. Slurm starts it when the other one ends, as in a stock chain. A release
// after that end would cost a turn of Slurm's scheduler (batch_sched_delay, 3 s: measured on 22.05). readyLink
// reports false if this must wait.
func readyLink(c *state.Core, s *state.Snapshot, j *state.Job, r *slurmctl.Job) bool {
	hold, _ := hold.HoldFor(c, j, j.Step+1)
	if r.State != slurmctl.Pending || r.ID == j.Readied && r.Reservation == hold.Name {
		return true
	}
	if done, lacks := shapeAhead(c, j, r, j.Step+1); lacks {
		return done
	}
	u := slurmctl.JobUpdate{StartNow: true, Reservation: &hold.Name}
	if p := slurm.PartitionFor(c, s, j); p != r.Partition {
		u.Partition = p
	}
	return c.Chore(&c.Pace.Mirror, j, state.KindReadyLink, msg.Update{Job: r.ID, Change: u}, state.Args{Seen: c.SeenIn(j, r)})
}

// SettleReadyLink is called when a chain's next link was released ahead, or when that failed.
func SettleReadyLink(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	do := state.CommandOf[msg.Update](p)
	if o.Err != nil {
		j.RetryAt = c.Now.Add(state.AgainAfter)
		c.LogJob(j).WithError(o.Err).Warn("cannot release the chain's next job early; releasing it when its time comes")
		return
	}
	j.Touched, j.Readied = c.Now, do.Job
	state.Wrote(c.RecordOf(j, p, do.Job), do.Change)
}

// mirrorStep writes one planned start into a pending Slurm job, and first the nodes of a moldable job. It
// skips a start that is nearly right: small shifts are not worth a command. It reports false if this must
// wait.
func mirrorStep(c *state.Core, j *state.Job, r *slurmctl.Job, step int, now time.Time) bool {
	if r.State != slurmctl.Pending {
		return true
	}
	want, held := wanted(c, j, step, now)
	if done, lacks := shapeAhead(c, j, r, step); lacks {
		return done
	}
	var u slurmctl.JobUpdate
	off := r.StartTime.Sub(want).Abs()
	if near := c.Passed(now, want.Add(-adopt.Parked/2)) || c.Passed(now, r.StartTime.Add(-adopt.Parked/2)); near && tooFar(c, now, want, off) {
		u.StartTime = want
	}
	if j.Reservation != "" { // it asks for the hold as it starts, which must not be forgotten: the record has one of them only
		held = ""
	}
	if _, ours := hold.HoldNamed(c, r.Reservation); held != "" && r.Reservation != held || held == "" && ours {
		back := cmp.Or(held, j.Reservation)
		u.Reservation = &back
	}
	if u.StartTime.IsZero() && u.Reservation == nil {
		return true
	}
	do, args := msg.Update{Job: r.ID, Change: u}, state.Args{Seen: c.SeenIn(j, r)}
	if c.Drained() { // Slurm must not start it by the plan before
		return c.Work.Room() && c.Ask(j, "", state.KindMirror, msg.Task{Command: do}, args)
	}
	return c.Chore(&c.Pace.Mirror, j, state.KindMirror, do, args)
}

// wanted returns the start and the hold that the Slurm job of a step must have.
func wanted(c *state.Core, j *state.Job, step int, now time.Time) (start time.Time, held string) {
	if len(j.Plan) < step {
		return now.Add(adopt.Parked), ""
	}
	r, _ := hold.HoldFor(c, j, step)
	planned := time.Unix(c.Until(now.Unix(), j.Plan[step-1].Start), 0)
	return msg.Later(planned, now).Add(plan.MirrorDelay), r.Name
}

// tooFar reports whether a start in Slurm is off by more than its slack.
func tooFar(c *state.Core, now, want time.Time, off time.Duration) bool {
	if off <= plan.MirrorDelay*2/3 {
		return false
	}
	c.Passed(now, want.Add(-10*min(off, adopt.Parked)))
	return off > hold.Slack(want.Sub(now))
}

// SettleMirror is called when a planned start was written into Slurm, or when that failed.
func SettleMirror(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	do := state.CommandOf[msg.Update](p)
	r := c.RecordOf(j, p, do.Job)
	if o.Err != nil {
		c.LogJob(j).WithError(o.Err).Warn("cannot write the planned start into Slurm")
		if j.RetryAt = c.Now.Add(state.AgainAfter); !state.Outage(o.Err) && r.State == slurmctl.Pending {
			j.Failed("to write its planned start into Slurm", o.Err, c.Now, c.Wall)
			follow.MayLeave(c, j, o.Err)
		}
		return
	}
	j.Succeeded()
	j.Touched = c.Now
	state.Wrote(r, do.Change)
	if !do.Change.StartTime.IsZero() && r.ID == j.Readied {
		j.Readied = 0
	}
}

// shapeAhead gives a waiting Slurm job what the chosen alternative needs. It reports lacks if the job does not
// have that yet, and not done if this must wait.
func shapeAhead(c *state.Core, j *state.Job, r *slurmctl.Job, step int) (done, lacks bool) {
	u, lacks := plan.Shape(c, j, r, step)
	if !lacks || len(j.Plan) < step {
		return true, false
	}
	return c.Chore(&c.Pace.Mirror, j, state.KindShapeAhead, u, state.Args{Seen: c.SeenIn(j, r)}), true
}

// SettleShapeAhead is called when a waiting Slurm job was given its alternative's shape, or when that failed.
func SettleShapeAhead(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err != nil {
		j.RetryAt = c.Now.Add(state.AgainAfter)
		c.LogJob(j).WithError(o.Err).Warn("cannot write the chosen alternative into Slurm")
	}
	j.Touched = c.Now
	plan.Shaped(c, j, p, o)
}
