package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// mirrorAge excludes jobs that start at once.
	mirrorAge = 5 * time.Second
	// mirrorDelay is how much later than planned Slurm itself would start a job.
	mirrorDelay = 10 * time.Second
)

// mirror writes the plan into Slurm. So users see planned starts in squeue, and Slurm keeps them if the
// sidecar dies. It writes StartTime, a little late since the sidecar releases the job at the second itself,
// and the hold to start in. For a chain that has begun, it writes all coming steps. It does what the allowance
// permits, and continues later where it stopped.
func (c *Core) mirror(s *snapshot) {
	now := c.now
	for range c.active {
		c.mirrored++
		if c.mirrored >= len(c.active) {
			c.mirrored = 0
		}
		j := c.active[c.mirrored]
		c.at(j)
		if age := now.Sub(j.Submitted); age >= 0 && age < mirrorAge || j.busy || j.touched.After(s.taken) || now.Before(j.retryAt) {
			continue
		}
		done := true
		switch {
		case j.State == row.Queued:
			done = c.mirrorStep(j, &j.record, 1, now)
		case j.mode.stepsAreJobs && j.runs():
			done = c.mirrorLinks(s, j, now)
		}
		if !done {
			c.mirrored-- // comes first the next time
			return
		}
	}
}

// mirrorLinks does what mirror does, for the coming steps of a chain. It reports false if some must wait.
func (c *Core) mirrorLinks(s *snapshot, j *job, now time.Time) bool {
	done := true
	for k := j.Step; k < len(j.chain) && done && !j.busy; k++ {
		r := j.in(s, j.chain[k])
		switch {
		case r == nil, r.ID == j.letGo, r.ID == j.readied && j.State == row.Waiting:
		case k == j.Step && c.linkIsNear(j, now):
			done = c.readyLink(s, j, r)
		default:
			done = c.mirrorStep(j, r, k+1, now)
		}
	}
	return done
}

// linkAhead is how long before its planned start a chain's next link is readied.
const linkAhead = 30 * time.Second

// linkIsNear reports whether a chain's next link will begin soon and has a hold.
func (c *Core) linkIsNear(j *job, now time.Time) bool {
	if j.State != row.Running || !j.mode.readiesLinks || j.isSuspended() || j.next() == nil {
		return false
	}
	_, held := c.holdFor(j, j.Step+1)
	return held && time.Unix(j.next().start, 0).Sub(now) <= linkAhead
}

// readyLink releases a chain's next link before the current one has ended. Its dependency keeps it until then,
// and its hold until the hold begins. Slurm starts it when the other one ends, as in a stock chain. A release
// after that end would cost a turn of Slurm's scheduler (batch_sched_delay, 3 s: measured on 22.05). readyLink
// reports false if this must wait.
func (c *Core) readyLink(s *snapshot, j *job, r *slurmctl.Job) bool {
	hold, _ := c.holdFor(j, j.Step+1)
	if r.State != slurmctl.Pending || r.ID == j.readied && r.Reservation == hold.Name {
		return true
	}
	if done, lacks := c.shapeAhead(j, r, j.Step+1); lacks {
		return done
	}
	u := slurmctl.JobUpdate{StartNow: true, Reservation: &hold.Name}
	if p := c.partitionFor(s, j); p != r.Partition {
		u.Partition = p
	}
	return c.chore(&c.pace.mirror, j, KindReadyLink, Update{Job: r.ID, Change: u}, Args{Seen: c.seenIn(j, r)})
}

// settleReadyLink is called when a chain's next link was released ahead, or when that failed.
func (c *Core) settleReadyLink(j *job, p *Pending, o Outcome) {
	do := commandOf[Update](p)
	if o.Err != nil {
		j.retryAt = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("cannot release the chain's next job early; releasing it when its time comes")
		return
	}
	j.touched, j.readied = c.now, do.Job
	if do.Change.Reservation != nil {
		c.recordOf(j, p, do.Job).Reservation = *do.Change.Reservation
	}
}

// mirrorStep writes one planned start into a pending Slurm job, and first the nodes of a moldable job. It
// skips a start that is nearly right: small shifts are not worth a command. It reports false if this must
// wait.
func (c *Core) mirrorStep(j *job, r *slurmctl.Job, step int, now time.Time) bool {
	if r.State != slurmctl.Pending {
		return true
	}
	want, hold := now.Add(parked), ""
	if len(j.plan) >= step {
		want = time.Unix(j.plan[step-1].start, 0).Add(mirrorDelay)
		if soonest := now.Add(mirrorDelay); want.Before(soonest) {
			want = soonest
		}
		if res, ok := c.holdFor(j, step); ok {
			hold = res.Name
		}
	}
	if done, lacks := c.shapeAhead(j, r, step); lacks {
		return done
	}
	var u slurmctl.JobUpdate
	off := r.StartTime.Sub(want).Abs()
	if off > max(mirrorDelay*2/3, slack(want.Sub(now))) && (want.Sub(now) < parked/2 || r.StartTime.Sub(now) < parked/2) {
		u.StartTime = want
	}
	if _, ours := c.holdNamed(r.Reservation); hold != "" && r.Reservation != hold || hold == "" && ours {
		u.Reservation = &hold
	}
	if u.StartTime.IsZero() && u.Reservation == nil {
		return true
	}
	return c.chore(&c.pace.mirror, j, KindMirror, Update{Job: r.ID, Change: u}, Args{Seen: c.seenIn(j, r)})
}

// settleMirror is called when a planned start was written into Slurm, or when that failed.
func (c *Core) settleMirror(j *job, p *Pending, o Outcome) {
	do := commandOf[Update](p)
	r := c.recordOf(j, p, do.Job)
	if o.Err != nil {
		c.logJob(j).WithError(o.Err).Warn("cannot write the planned start into Slurm")
		if j.retryAt = c.now.Add(againAfter); !outage(o.Err) && r.State == slurmctl.Pending {
			j.failed("to write its planned start into Slurm", o.Err, c.now, c.wall)
			c.mayLeave(j, o.Err)
		}
		return
	}
	j.failures, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
	j.touched = c.now
	if !do.Change.StartTime.IsZero() {
		if r.StartTime = do.Change.StartTime; r.ID == j.readied {
			j.readied = 0
		}
	}
	if do.Change.Reservation != nil {
		r.Reservation = *do.Change.Reservation
	}
}

// shapeAhead gives a waiting Slurm job what the chosen alternative needs. It reports lacks if the job does not
// have that yet, and not done if this must wait.
func (c *Core) shapeAhead(j *job, r *slurmctl.Job, step int) (done, lacks bool) {
	u, lacks := c.shape(j, r, step)
	if !lacks || len(j.plan) < step {
		return true, false
	}
	return c.chore(&c.pace.mirror, j, KindShapeAhead, u, Args{Seen: c.seenIn(j, r)}), true
}

// settleShapeAhead is called when a waiting Slurm job was given its alternative's shape, or when that failed.
func (c *Core) settleShapeAhead(j *job, p *Pending, o Outcome) {
	if o.Err != nil {
		j.retryAt = c.now.Add(againAfter)
		c.logJob(j).WithError(o.Err).Warn("cannot write the chosen alternative into Slurm")
	}
	j.touched = c.now
	c.shaped(j, p, o)
}
