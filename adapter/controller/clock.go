package controller

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A machine's clock may be set while jobs run, and a machine may sleep. Steps last
// for a time, not until one: what the sidecar keeps of them in seconds of the wall
// clock moves with it, as measured by the monotonic clock, and all is planned anew.
// Begin times that users gave stay what they are. What Slurm keeps itself (when a
// job ends, when a reservation does) does not move: a job whose limit is thereby too
// short for its plan gets a longer one.

const (
	// clockSlack is how far both clocks may drift apart between two looks: less is
	// being slewed, not stepped.
	clockSlack = 2 * time.Second
	// stillSlack is for how long the loop may not go on without being suspected to
	// have slept.
	stillSlack = 10 * time.Second
)

// watchClock finds out whether the wall clock was stepped since it was last called,
// and whether the loop stood still though it was to wake after wait.
func (c *Controller) watchClock(now time.Time, wait time.Duration) {
	last := c.tick
	c.tick = now
	if last.IsZero() {
		c.awake = now
		return
	}
	passed := now.Sub(last) // by the monotonic clock
	if step := now.Round(0).Sub(last.Round(0)) - passed; step.Abs() >= clockSlack {
		c.clockStepped(now, step.Round(time.Second))
	}
	if still := passed - max(wait, 0); still >= stillSlack {
		c.log.WithField("seconds", int(still.Seconds())).Warn("the sidecar stood still; overruns are counted from now on")
		c.event(nil, "stood still", map[string]any{"seconds": int(still.Seconds())})
		c.awake = now
	}
}

func (c *Controller) clockStepped(now time.Time, step time.Duration) {
	entry := c.log.WithField("seconds", int(step.Seconds()))
	entry.Warn("the machine's clock was stepped: all is planned anew")
	if step < 0 {
		entry.Warn("slurmctld starts no queued job until the clock is where it was, unless it is restarted")
	}
	c.together(func() {
		c.event(nil, "clock stepped", map[string]any{"seconds": int(step.Seconds())})
		for _, j := range c.active {
			c.shift(j, step)
		}
	})
	if before := now.Round(0).Add(-step); before.After(c.countsFrom) {
		c.countsFrom = before
	}
	if s := c.snapshot; s != nil { // plans are made from its time on, until the next
		s.taken, s.nodesTaken = byClockOf(now, s.taken), byClockOf(now, s.nodesTaken)
	}
	c.nextCycle, c.stepped, c.pace.pause = now, now, 0
}

// byClockOf is a time that has passed as the clock tells it that now was read from, even
// if it was set in between.
func byClockOf(now, t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return now.Add(t.Sub(now)) // the difference is by the monotonic clock
}

// countsStand says whether slurmctld may tell of CPUs allocated on nodes as they were:
// after its clock was set back it counts anew only once the old time is reached again,
// or it is started anew (source, all versions: last_set_all of the select plugins). What
// its jobs have is true all the time.
func (c *Controller) countsStand() bool { return time.Now().Round(0).Before(c.countsFrom) }

// shift moves what is kept of a job in wall time.
func (c *Controller) shift(j *job, by time.Duration) {
	if len(j.plan) > 0 {
		plan := make([]plannedStep, len(j.plan))
		for i, p := range j.plan {
			plan[i] = plannedStep{start: p.start + int64(by/time.Second), end: p.end + int64(by/time.Second), nodes: p.nodes}
		}
		c.storePlan(j, plan)
	}
	if j.overdue != 0 {
		j.overdue += int64(by / time.Second)
	}
	for _, at := range []*time.Time{&j.StepStarted, &j.StepEnded} {
		if !at.IsZero() {
			*at = at.Round(0).Add(by)
		}
	}
	c.save(j)
}

// notInFuture puts right a job's times where the clock was set back while the
// sidecar was down: how much of the step has passed is not known.
func (c *Controller) notInFuture(j *job, now time.Time) {
	if j.State == store.Ended || !j.StepStarted.After(now.Add(clockSlack)) {
		return
	}
	c.logJob(j).Warn("its step begins in the future: the clock was set back; it is taken to begin now")
	j.StepStarted, j.StepEnded = now, time.Time{}
	if j.State == store.Waiting {
		j.StepEnded = now
	}
	j.plan = nil
	c.save(j)
}

// startedAt is when Slurm started a job that runs, by the clock of now. Slurm's word is
// by the clock of then, which may have been set since: no job has started in the future,
// nor before it was last seen queued.
func startedAt(r *slurmctl.Job, queued, now time.Time) time.Time {
	queued = byClockOf(now, queued)
	switch {
	case r.StartTime.After(now.Add(clockSlack)):
		return now
	case !queued.IsZero() && r.StartTime.Before(queued.Add(-clockSlack)):
		return queued
	}
	return r.StartTime
}
