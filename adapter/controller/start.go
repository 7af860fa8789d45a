package controller

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ignoreUnknown is err unless it says that a reservation is gone already.
func ignoreUnknown(err error) error {
	if errors.Is(err, slurmctl.ErrUnknownReservation) {
		return nil
	}
	return err
}

// start lets a parked job go, into the hold on its first step's nodes: once all
// its growths are held too, nobody has slipped in before, and the nodes are free.
func (c *Controller) start(s *snapshot, j *job) {
	now := time.Now().Unix()
	hold, ok := c.holdFor(j, 1)
	if !ok || hold.Start.Unix() > now || !c.confirmed(s, j, now) {
		j.reason = "its nodes are being held"
		return
	}
	if !s.free(j.plan[0].nodes) {
		j.reason = "waits for nodes that are about to be free"
		return
	}
	c.letGo(j, j.record.ID, hold.Name, store.Starting)
}

// letGo starts a pending Slurm job of j inside a hold, now: a StartTime in the
// future would wait for one of Slurm's cycles after it.
func (c *Controller) letGo(j *job, id slurmctl.JobID, hold string, state store.State) {
	j.State, j.reason = state, "let go, about to run"
	c.save(j)
	c.do(j, "start", hold, func(ctx context.Context) error {
		return c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{StartNow: true, Reservation: &hold})
	}, func(err error) {
		if err != nil && state == store.Starting {
			j.State = store.Queued
			c.save(j)
		}
	})
}

const (
	// startWait is how long Slurm may take to start a job that was let go.
	startWait = time.Minute
	// parkTime is how long a job that it did not start stays parked again.
	parkTime = time.Minute
)

// park takes back a job that Slurm does not start, for a reason of its own (a
// limit of the account, say), so that its nodes are not held in vain.
func (c *Controller) park(j *job) {
	why := "Slurm did not start it: " + j.record.Reason
	id, none := j.record.ID, ""
	c.do(j, "park", why, func(ctx context.Context) error {
		return c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{StartTime: time.Now().Add(parked), Reservation: &none})
	}, func(err error) {
		if err == nil {
			j.State, j.parkedUntil, j.parkedWhy = store.Queued, time.Now().Add(parkTime), why
			c.save(j)
			c.event(j, "parked again", map[string]any{"reason": j.record.Reason})
		}
	})
}

const (
	// mirrorAge spares jobs that start at once.
	mirrorAge = 5 * time.Second
	// mirrorDelay is how much later than planned Slurm itself would start a job.
	mirrorDelay = 10 * time.Second
	// mirrorChanges bounds how many jobs' StartTime is changed in one cycle, mirrorTime
	// for how long.
	mirrorChanges = 8
	mirrorTime    = 100 * time.Millisecond
	// parked is how far in the future the start of a job without a plan is.
	parked = 10 * 365 * 24 * time.Hour
)

// mirror writes the plan into Slurm, so that users see planned starts in squeue and
// that Slurm keeps them should the sidecar die: StartTime, a little late since the
// sidecar lets the job go at the second itself, and the hold to start in. Of a
// chain that has begun, all coming steps.
func (c *Controller) mirror(s *snapshot) {
	now := time.Now()
	changes := 0
	first := c.mirrored // where the last cycle had to stop
	for i := range c.active {
		at := (first + i) % len(c.active)
		if changes >= mirrorChanges || time.Since(now) > mirrorTime {
			break
		}
		j := c.active[at]
		c.mirrored = at + 1
		if now.Sub(j.Submitted) < mirrorAge || j.busy || j.touched.After(s.taken) || now.Before(j.retryAt) {
			continue
		}
		switch {
		case j.State == store.Queued:
			c.mirrorStep(j, &j.record, 1, now, &changes)
		case j.isChain() && j.runs():
			for k := j.Step; k < len(j.chain); k++ {
				if r := s.byID[j.chain[k]]; r != nil && r.ID != j.letGo {
					c.mirrorStep(j, r, k+1, now, &changes)
				}
			}
		}
	}
}

// mirrorStep writes one planned start into a pending Slurm job, unless it is
// nearly there: small shifts are not worth a command.
func (c *Controller) mirrorStep(j *job, r *slurmctl.Job, step int, now time.Time, changes *int) {
	if r.State != slurmctl.Pending || *changes >= mirrorChanges {
		return
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
	var u slurmctl.JobUpdate
	off := r.StartTime.Sub(want).Abs()
	if off > max(mirrorDelay*2/3, slack(want.Sub(now))) && (want.Sub(now) < parked/2 || r.StartTime.Sub(now) < parked/2) {
		u.StartTime = want
	}
	if _, ours := parseHoldName(r.Reservation); hold != "" && r.Reservation != hold || hold == "" && ours {
		u.Reservation = &hold
	}
	if u.StartTime.IsZero() && u.Reservation == nil {
		return
	}
	*changes++
	if err := c.slurm.UpdateJob(c.ctx, r.ID, u); err != nil {
		j.retryAt = now.Add(2 * time.Second)
		c.logJob(j).WithError(err).Warn("the planned start could not be written into Slurm")
		return
	}
	if !u.StartTime.IsZero() {
		r.StartTime = want
	}
	if u.Reservation != nil {
		r.Reservation = hold
	}
}
