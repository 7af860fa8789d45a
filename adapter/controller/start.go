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

// mirrorChanges bounds how many jobs' StartTime is changed in one cycle.
const mirrorChanges = 20

// mirror writes planned starts into Slurm, so that users see them in squeue and
// that Slurm keeps them should the sidecar die. They are a little late: at the
// second itself the sidecar lets the job go.
func (c *Controller) mirror(s *snapshot) {
	now := time.Now()
	changes := 0
	for _, j := range c.active {
		if now.Sub(j.Submitted) < mirrorAge || j.busy || j.touched.After(s.taken) || j.record.State != slurmctl.Pending || now.Before(j.retryAt) {
			continue
		}
		var want time.Time
		switch {
		case j.State == store.Queued && len(j.plan) > 0:
			want = time.Unix(j.plan[0].start, 0).Add(mirrorDelay)
			if soonest := now.Add(mirrorDelay); want.Before(soonest) {
				want = soonest
			}
		case j.State == store.Queued:
			want = now.Add(parked)
		default:
			continue
		}
		// small shifts are not worth a command
		off := j.record.StartTime.Sub(want)
		if off < 0 {
			off = -off
		}
		if off < mirrorDelay*2/3 || want.Sub(now) > parked/2 && j.record.StartTime.Sub(now) > parked/2 {
			continue
		}
		if changes++; changes > mirrorChanges {
			return
		}
		if err := c.slurm.UpdateJob(c.ctx, j.record.ID, slurmctl.JobUpdate{StartTime: want}); err != nil {
			j.retryAt = now.Add(2 * time.Second)
			c.logJob(j).WithError(err).Warn("the planned start could not be written into Slurm")
			continue
		}
		j.record.StartTime = want
	}
}

const (
	// mirrorAge spares jobs that start at once.
	mirrorAge = 5 * time.Second
	// mirrorDelay is how much later than planned Slurm itself would start a job.
	mirrorDelay = 30 * time.Second
	// parked is how far in the future the start of a job without a plan is.
	parked = 10 * 365 * 24 * time.Hour
)
