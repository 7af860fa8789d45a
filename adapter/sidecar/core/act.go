package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// act carries out what is due, at most one action per job at a time. It handles jobs that
// give nodes back first, so that jobs waiting for these nodes need no second look.
func (c *Core) act(s *snapshot) {
	now := c.now
	for _, shrinking := range []bool{true, false} {
		for j := range c.each(c.active) {
			if j.busy || j.ending || now.Before(j.retryAt) || c.shrinks(j) != shrinking {
				continue
			}
			if !c.work.room() {
				return // act again when something has ended
			}
			c.actOn(s, j, now)
		}
	}
}

func (c *Core) shrinks(j *job) bool {
	next := j.next()
	return j.State == row.Waiting && next != nil && len(next.nodes) < len(j.nodes())
}

func (c *Core) actOn(s *snapshot, j *job, now time.Time) {
	if c.actFirst(s, j, now) {
		return
	}
	switch j.State {
	case row.Queued:
		if j.kept == nil && len(j.plan) > 0 && j.plan[0].start <= now.Unix() { // jobs kept back are replanned, not started
			c.start(s, j)
		}
	case row.Starting:
		if now.Sub(j.touched) > startWait && j.record.State == slurmctl.Pending || keptStart(s, &j.record, j.touched) {
			c.park(j, &j.record, row.Queued)
		}
	case row.Waiting:
		c.transition(s, j, now)
	case row.Running:
		c.repair(s, j)
		if !j.busy {
			c.watchOverrun(j, now)
		}
	}
	if j.runs() && !j.busy {
		c.extendLimits(s, j)
	}
}

// actFirst carries out what comes before a job's next step. It reports whether the job must not do anything
// else now.
func (c *Core) actFirst(s *snapshot, j *job, now time.Time) bool {
	if j.unwritten {
		if c.writeRequest(j); j.busy {
			return true
		}
	}
	if r, attached := c.attached(s, j); attached && j.runs() {
		c.detach(j, r)
		return true
	}
	switch {
	case j.isSuspended():
		return true
	case j.runs() && j.recount:
		c.recountSuspension(j)
		return true
	case j.runs() && j.asked == nil && c.facts.stepManagers && j.mode.resizes:
		j.reason = because(whyRequestUnread)
		return true
	}
	return j.runs() && c.carryOffer(s, j, now)
}

// attached returns a Slurm job of j that runs inside one of our holds. Slurm would kill the
// job at the hold's end, and the sidecar could not give up the hold.
func (c *Core) attached(s *snapshot, j *job) (slurmctl.Job, bool) {
	if j.mode.staysInHold {
		return slurmctl.Job{}, false // the job must stay in the hold, see Start
	}
	for _, p := range j.held {
		r := s.byID[p.ID]
		if p.ID == j.record.ID {
			r = &j.record // includes changes made since the snapshot
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

// detach moves a running job out of the hold in which it started. It then gives up the hold,
// because the job itself has the nodes. If the hold belongs to another job, detach keeps it.
func (c *Core) detach(j *job, r slurmctl.Job) {
	hold := r.Reservation
	own, _ := parseHoldName(hold)
	c.do(j, "detach", hold, KindDetach, Detach{r.ID, hold, own.job == j.id()}, Args{})
}

// settleDetach handles the outcome of moving a job out of its hold.
func (c *Core) settleDetach(j *job, p *Pending, o Outcome) {
	if o.Err != nil {
		return
	}
	do := commandOf[Detach](p)
	if j.record.ID == do.Job {
		j.record.Reservation = ""
	}
	if do.GiveUp {
		c.forgetHold(do.Hold)
	}
}

// watchOverrun handles a job that keeps a step longer than its profile says. The sidecar
// tolerates the overrun while no other job was promised its nodes. If another job was, the
// sidecar applies the site's policy after twice the grace.
func (c *Core) watchOverrun(j *job, now time.Time) {
	if j.lapsed() {
		j.reason = saying(whyLapsed, j.lapsedWords())
	}
	late := c.overrun(j, now)
	if late < c.cfg.Grace {
		return
	}
	c.lapse(j, now)
	if !j.warned {
		j.warned = true
		if j.reason = because(whyOverruns); j.lapsed() {
			j.reason = saying(whyLapsed, j.lapsedWords())
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
	case c.cfg.Overrun == "shrink" && shrinks && j.mode.resizes:
		c.event(j, "enforced", detail)
		c.logJob(j).Warn("ending the step: its nodes were promised to another job")
		c.endStep(j, now)
	case c.cfg.Overrun == "cancel" || j.last():
		c.event(j, "enforced", detail)
		c.logJob(j).Warn("cancelling the job: its nodes were promised to another job")
		c.do(j, "cancel", "overrun", KindEnforce, Cancel{[]slurmctl.JobID{j.record.ID}}, Args{})
	}
}

// settleEnforce handles the outcome of cancelling a job for another job.
func (c *Core) settleEnforce(j *job, _ *Pending, o Outcome) { j.ending = o.Err == nil }

// warn sends the site's signal to a job that keeps a step too long: to its script, its
// children and its steps, including those of companions.
func (c *Core) warn(j *job) { c.signal(j, KindWarn) }

// settleWarn handles the outcome of warning a job.
func (c *Core) settleWarn(j *job, _ *Pending, o Outcome) {
	if o.Err != nil {
		j.warned = false // warn again after the pause
	}
}

// signal sends the site's signal to all Slurm jobs of a job.
func (c *Core) signal(j *job, kind Kind) {
	ids := []slurmctl.JobID{j.record.ID}
	for _, p := range j.held {
		if p.ID != j.record.ID {
			ids = append(ids, p.ID)
		}
	}
	name := c.cfg.OverrunSignal
	c.do(j, "warn", name, kind, Signal{ids, name}, Args{})
}

// rival returns a job that waits for a promised growth on nodes that j still has.
func (c *Core) rival(j *job, now time.Time) *job {
	for _, other := range c.active {
		if other == j || other.State != row.Waiting || other.kept != nil || other.isSuspended() {
			continue
		}
		if next := other.next(); next != nil && next.start <= now.Unix() && len(common(next.nodes, j.own())) > 0 { // lent nodes are demanded back elsewhere
			return other
		}
	}
	return nil
}
