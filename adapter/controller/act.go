package controller

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// act does what is due, at most one action a job at a time. Jobs that give nodes
// back come first, so that those that wait for them need not look twice.
func (c *Controller) act(s *snapshot) {
	now := time.Now()
	for _, shrinking := range []bool{true, false} {
		for _, j := range c.active {
			if j.busy || j.ending || now.Before(j.retryAt) || c.shrinks(j) != shrinking {
				continue
			}
			if !c.work.room() {
				return // again when something has ended
			}
			c.actOn(s, j, now)
		}
	}
}

func (c *Controller) shrinks(j *job) bool {
	next := j.next()
	return j.State == store.Waiting && next != nil && len(next.nodes) < len(j.nodes())
}

func (c *Controller) actOn(s *snapshot, j *job, now time.Time) {
	if r, attached := c.attached(s, j); attached && j.runs() {
		c.detach(j, r)
		return
	}
	switch {
	case j.isSuspended():
		return
	case j.runs() && j.recount:
		c.recountSuspension(j)
		return
	}
	switch j.State {
	case store.Queued:
		if len(j.plan) > 0 && j.plan[0].start <= now.Unix() {
			c.start(s, j)
		}
	case store.Starting:
		if now.Sub(j.touched) > startWait && j.record.State == slurmctl.Pending || keptStart(s, &j.record, j.touched) {
			c.park(j, &j.record, store.Queued)
		}
	case store.Waiting:
		c.transition(s, j, now)
	case store.Running:
		c.repair(s, j)
		if !j.busy {
			c.watchOverrun(j, now)
		}
	}
	if j.runs() && !j.busy {
		c.extendLimits(s, j)
	}
}

// attached finds a Slurm job of j that runs inside one of our holds. It would be
// killed at the hold's end, and the hold could not be given up.
func (c *Controller) attached(s *snapshot, j *job) (slurmctl.Job, bool) {
	if c.slurm.WantsAccount() {
		return slurmctl.Job{}, false // it cannot be helped: letGoBare
	}
	for _, p := range j.held {
		r := s.byID[p.id]
		if p.id == j.record.ID {
			r = &j.record // knows of what was done since the snapshot
		} else if j.touched.After(s.taken) {
			continue
		}
		if r == nil || r.State != slurmctl.Running && r.State != slurmctl.Suspended {
			continue
		}
		if _, ours := c.holdNamed(r.Reservation); ours {
			return *r, true
		}
	}
	return slurmctl.Job{}, false
}

// detach takes a running job out of the hold that it was started in, and gives the
// hold up: the nodes are the job's own now. A hold of another job's is left to that.
func (c *Controller) detach(j *job, r slurmctl.Job) {
	hold := r.Reservation
	own, _ := parseHoldName(hold)
	c.do(j, "detach", hold, func(ctx context.Context) error {
		none := ""
		if err := c.slurm.UpdateJob(ctx, r.ID, slurmctl.JobUpdate{Reservation: &none}); err != nil {
			return err
		}
		if own.job != j.id() {
			return nil
		}
		return ignoreUnknown(c.slurm.DeleteReservation(ctx, hold))
	}, func(err error) {
		if err == nil {
			if j.record.ID == r.ID {
				j.record.Reservation = ""
			}
			if own.job == j.id() {
				c.forgetHold(hold)
			}
		}
	})
}

// watchOverrun sees to a job that keeps a step for longer than it said. It is
// tolerated while nobody else was promised its nodes; where somebody was, the
// site's policy is carried out after twice the grace.
func (c *Controller) watchOverrun(j *job, now time.Time) {
	if j.lapsed() {
		j.reason = j.lapsedWords()
	}
	late := c.overrun(j, now)
	if late < c.cfg.Grace {
		return
	}
	c.lapse(j, now)
	if !j.warned {
		j.warned = true
		if j.reason = "the step lasts longer than its profile says"; j.lapsed() {
			j.reason = j.lapsedWords()
		}
		c.event(j, "overrun", map[string]any{"step": j.Step, "seconds": int(late.Seconds())})
		c.logJob(j).Warn("the step lasts longer than the profile says; its nodes may be taken back once others need them")
		if c.cfg.OverrunSignal != "" {
			c.warn(j)
			return
		}
	}
	rival := c.rival(j, now)
	if late < 2*c.cfg.Grace || rival == nil {
		return
	}
	detail := map[string]any{"step": j.Step, "rival": rival.SlurmID, "policy": c.cfg.Overrun}
	shrinks := !j.last() && j.Profile[j.Step].Nodes < j.Profile[j.Step-1].Nodes
	switch {
	case c.cfg.Overrun == "shrink" && shrinks && !j.isChain():
		c.event(j, "enforced", detail)
		c.logJob(j).Warn("the step is ended: its nodes were promised to another job")
		c.endStep(j, now)
	case c.cfg.Overrun == "cancel" || j.last():
		c.event(j, "enforced", detail)
		c.logJob(j).Warn("the job is cancelled: its nodes were promised to another job")
		id := j.record.ID
		c.do(j, "cancel", "overrun", func(ctx context.Context) error { return c.slurm.Cancel(ctx, id) }, func(error) {})
	}
}

// warn sends the site's signal to all of a job that keeps a step for too long: its
// script, its children and its steps, on companions too.
func (c *Controller) warn(j *job) {
	ids := []slurmctl.JobID{j.record.ID}
	for _, p := range j.held {
		if p.id != j.record.ID {
			ids = append(ids, p.id)
		}
	}
	name := c.cfg.OverrunSignal
	c.do(j, "warn", name, func(ctx context.Context) error {
		var errs []error
		for _, id := range ids {
			if err := c.slurm.Signal(ctx, id, name, slurmctl.SignalOptions{Full: true}); err != nil && !errors.Is(err, slurmctl.ErrAlreadyDone) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}, func(err error) {
		if err != nil {
			j.warned = false // again, when it is tried again
		}
	})
}

// rival is a job that waits for a promised growth on nodes that j still has.
func (c *Controller) rival(j *job, now time.Time) *job {
	for _, other := range c.active {
		if other == j || other.State != store.Waiting || other.kept != nil || other.isSuspended() {
			continue
		}
		if next := other.next(); next != nil && next.start <= now.Unix() && len(common(next.nodes, j.nodes())) > 0 {
			return other
		}
	}
	return nil
}
