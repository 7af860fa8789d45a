package core

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The machine's clock may be set while jobs run, and a machine may sleep. A step lasts for a
// duration, not until a time of day. So the core has its own steady clock, which is never set. The
// shell passes its time to every step, and reports when the machine's clock was set ([ClockSet]).
// Slurm, the database and all texts for people use the machine's clock. Only this file translates
// their times, where they enter and leave the core. Times that Slurm itself keeps (the end of a job
// or a reservation, a user's begin time) therefore move on the core's clock. If a job's limit
// becomes too short for its plan, the job gets a longer limit.

// stillSlack is how late a call of the core may be before the core suspects that the machine slept.
const stillSlack = 10 * time.Second

// clockSlack is how far off times of Slurm may be.
const clockSlack = 2 * time.Second

// watchStill finds out whether the sidecar stood still although the core should have been called.
func (c *Core) watchStill(now time.Time) {
	last := c.tick
	c.tick = now
	if last.IsZero() {
		c.awake = now
		return
	}
	if still := now.Sub(last) - max(c.wait, 0); still >= stillSlack {
		c.log.WithField("seconds", int(still.Seconds())).Warn("the sidecar was stopped; counting overruns from now on")
		c.event(nil, "stood still", map[string]any{"seconds": int(still.Seconds())})
		c.awake = now
	}
}

// clockSet takes over that the machine's clock was set.
func (c *Core) clockSet(by time.Duration) {
	c.skew += by
	entry := c.log.WithField("seconds", int(by.Seconds()))
	entry.Warn("system clock changed, replanning all jobs")
	if by < 0 {
		entry.Warn("slurmctld starts no queued job until the clock reaches the old time or slurmctld restarts")
	}
	c.event(nil, "clock stepped", map[string]any{"seconds": int(by.Seconds())})
	// times that were read from the old clock
	back := func(times ...*time.Time) {
		for _, t := range times {
			if !t.IsZero() {
				*t = t.Add(-by)
			}
		}
	}
	for _, j := range c.active {
		back(&j.Begin, &j.Submitted, &j.accrued, &j.record.SubmitTime, &j.record.StartTime, &j.record.EndTime)
		c.save(j)
		c.unsaved[j] = true
	}
	if c.snapshot != nil {
		s := c.snapshot.copied() // an attempt may be reading the original
		c.snapshot, s.jobs = s, slices.Clone(s.jobs)
		s.byID = make(map[slurmctl.JobID]*slurmctl.Job, len(s.jobs))
		for i := range s.jobs {
			s.byID[s.jobs[i].ID] = &s.jobs[i]
			back(&s.jobs[i].SubmitTime, &s.jobs[i].StartTime, &s.jobs[i].EndTime)
		}
		for name, r := range s.reservations {
			back(&r.Start, &r.End)
			s.reservations[name] = r
		}
	}
	for _, all := range []map[string]slurmctl.Reservation{c.reservations, c.stuckHolds} {
		for name, r := range all {
			back(&r.Start, &r.End)
			all[name] = r
		}
	}
	c.delays.seen = 0
	if back(&c.countsFrom); by < 0 {
		c.countsFrom = Later(c.countsFrom, c.now.Add(-by))
	}
	c.nextCycle, c.stepped, c.pace.pause = c.now, c.now, 0
}

// in translates times of Slurm to the core's clock.
func (c *Core) in(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(-c.skew)
		}
	}
}

// wall translates a time of the core to the machine's clock.
func (c *Core) wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.skew)
}

// wallSecond does what wall does for a Unix second. It leaves 0, which means none.
func (c *Core) wallSecond(s int64) int64 {
	if s == 0 {
		return 0
	}
	return s + int64(c.skew/time.Second)
}

// clockText returns a time of day for people.
func (c *Core) clockText(t time.Time) string { return c.wall(t).Local().Format(time.TimeOnly) }

// jobIn translates the times of a Slurm job.
func (c *Core) jobIn(r *slurmctl.Job) { c.in(&r.SubmitTime, &r.StartTime, &r.EndTime) }

// resultIn translates the times in the result of a task.
func (c *Core) resultIn(result any) any {
	if c.skew == 0 {
		return result
	}
	switch r := result.(type) {
	case *slurmctl.Job:
		if r == nil {
			return r
		}
		one := *r
		c.jobIn(&one)
		return &one
	case []slurmctl.Job:
		all := slices.Clone(r)
		for i := range all {
			c.jobIn(&all[i])
		}
		return all
	case map[slurmctl.JobID]time.Time:
		all := maps.Clone(r)
		for id, at := range all {
			c.in(&at)
			all[id] = at
		}
		return all
	}
	return result
}

// out translates the times in an effect to the machine's clock.
func (c *Core) out(e Effect) Effect {
	if c.skew == 0 {
		return e
	}
	switch e := e.(type) {
	case AddJob:
		e.Job = c.outJob(e.Job)
		return e
	case SaveJob:
		return SaveJob{c.outJob(e.Job)}
	case SavePlan:
		e.Plan = slices.Clone(e.Plan)
		for i, p := range e.Plan {
			e.Plan[i].Start, e.Plan[i].End = c.wall(p.Start), c.wall(p.End)
		}
		return e
	case SaveAllocation:
		e.At = c.wall(e.At)
		return e
	case AddEvent:
		e.At = c.wall(e.At)
		return e
	case Settle:
		e.At = c.wall(e.At)
		return e
	case Task:
		return c.outTask(e)
	}
	return e
}

// outJob does what out does, for the row of a job.
func (c *Core) outJob(j row.Job) row.Job {
	for _, t := range []*time.Time{&j.Submitted, &j.Begin, &j.Started, &j.StepStarted, &j.StepEnded, &j.Ended, &j.Behind} {
		*t = c.wall(*t)
	}
	j.Offers = slices.Clone(j.Offers)
	for i := range j.Offers {
		o := &j.Offers[i]
		for _, t := range []*int64{&o.Made, &o.Deadline, &o.Answered, &o.Closed} {
			*t = c.wallSecond(*t)
		}
	}
	return j
}

// outTask does what out does, for a task.
func (c *Core) outTask(e Task) Task {
	if e.Intent != nil {
		intent := *e.Intent
		intent.At = c.wall(intent.At)
		e.Intent = &intent
	}
	switch do := e.Command.(type) {
	case Update:
		do.Change.StartTime, do.Change.EndTime = c.wall(do.Change.StartTime), c.wall(do.Change.EndTime)
		e.Command = do
	case ReadRequest:
		do.Try = c.wall(do.Try)
		e.Command = do
	case Reserve:
		do.Request.Start, do.Request.End = c.wall(do.Request.Start), c.wall(do.Request.End)
		e.Command = do
	case Grow:
		do.StaysUntil = c.wall(do.StaysUntil)
		e.Command = do
	case ChangeHold:
		do.Change.Start, do.Change.End = c.wall(do.Change.Start), c.wall(do.Change.End)
		e.Command = do
	}
	return e
}

// countsStand reports whether slurmctld may report outdated counts of allocated CPUs. After its
// clock was set back, it counts again only once the old time is reached or it restarts (source,
// all versions: last_set_all of the select plugins). What it reports about jobs is always correct.
func (c *Core) countsStand() bool { return c.now.Before(c.countsFrom) }

// shift moves the plan and step times of a job by a duration.
func (c *Core) shift(j *job, by time.Duration) {
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
			*at = at.Add(by)
		}
	}
	c.save(j)
}

// notInFuture corrects the times of a job if the clock was set back while the sidecar was
// down. How much of the step has passed is then unknown.
func (c *Core) notInFuture(j *job, now time.Time) {
	if j.State == row.Ended || !j.StepStarted.After(now.Add(clockSlack)) {
		return
	}
	c.logJob(j).Warn("the step begins in the future because the clock was set back; assuming that it begins now")
	j.StepStarted, j.StepEnded = now, time.Time{}
	if j.State == row.Waiting {
		j.StepEnded = now
	}
	c.storePlan(j, nil)
	c.save(j)
}

// startedAt returns when Slurm started a running job, by the current clock. Slurm's time is by the
// clock of that moment, which may have been set since. No job has started in the future, or
// before it was last seen queued.
func startedAt(r *slurmctl.Job, queued, now time.Time) time.Time {
	switch {
	case r.StartTime.After(now.Add(clockSlack)):
		return now
	case !queued.IsZero() && r.StartTime.Before(queued.Add(-clockSlack)):
		return queued
	}
	return r.StartTime
}
