package drive

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// startSoon is how long a released job is polled by itself until it runs; a poll of all jobs
	// would notice later.
	startSoon = 3 * time.Second
	// firstGlance is the delay of the first poll. Slurm mostly takes 0.3 to 2 s.
	firstGlance = 250 * time.Millisecond
)

// start lets a pending job go.
func (d *Driver) start(ctx, polls context.Context, c msg.Start) (*slurmctl.Job, error) {
	in := msg.Both(c.Hold, c.Inside)
	if err := d.Slurm.UpdateJob(ctx, c.Job, slurmctl.JobUpdate{StartNow: true, Reservation: &in, Partition: c.Partition, Switches: c.Switches}); err != nil {
		return nil, err
	}
	begun := d.awaitStart(polls, c)
	if c.OpenRow && begun != nil && d.Slurm.Slurmdbd(ctx) == nil {
		_ = d.Slurm.Shrink(ctx, c.Job, begun.NodeList) // it runs all the same, and its next resize opens the row
	}
	return begun, nil
}

// leaveHold takes a running job out of a hold, back into its reservation of the site if it has one. Where Slurm does not let it
// back, it runs on outside.
func (d *Driver) leaveHold(ctx context.Context, job slurmctl.JobID, inside string) error {
	err := d.Slurm.UpdateJob(ctx, job, slurmctl.JobUpdate{Reservation: &inside})
	if inside != "" && (errors.Is(err, slurmctl.ErrUnknownReservation) || errors.Is(err, slurmctl.ErrAccessDenied)) {
		none := ""
		err = d.Slurm.UpdateJob(ctx, job, slurmctl.JobUpdate{Reservation: &none})
	}
	return err
}

// awaitStart asks for the job until it runs, less and less often; nil if it does not yet.
func (d *Driver) awaitStart(ctx context.Context, c msg.Start) *slurmctl.Job {
	for wait, end := firstGlance, d.Now().Add(startSoon); d.Now().Before(end); wait += wait / 2 {
		d.Pause(ctx, wait)
		if ctx.Err() != nil {
			return nil
		}
		if c.Gently && d.resting(ctx) != nil {
			continue
		}
		seen, err := d.Slurm.Glance(ctx, c.Job)
		if err == nil && len(seen) == 1 && seen[0].State == slurmctl.Running && len(seen[0].NodeList) > 0 {
			return &seen[0]
		}
	}
	return nil
}
