package state

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The machine's clock may be set while jobs run, and a machine may sleep. A step lasts for a
// duration, not until a time of day. So the core has its own steady clock, which is never set. The
// shell passes its time to every step, and reports when the machine's clock was set ([msg.ClockSet]).
// Slurm, the database and all texts for people use the machine's clock. Only this file translates
// their times, where they enter and leave the core. Times that Slurm itself keeps (the end of a job
// or a reservation, a user's begin time) therefore move on the core's clock. If a job's limit
// becomes too short for its plan, the job gets a longer limit.

// stillSlack is how late a call of the core may be before the core suspects that the machine slept.
const stillSlack = 10 * time.Second

// ClockSlack is how far off times of Slurm may be.
const ClockSlack = 2 * time.Second

// WatchStill finds out whether the sidecar stood still although the core should have been called.
func WatchStill(c *Core, now time.Time) {
	last := c.Tick
	c.Tick = now
	if last.IsZero() {
		c.Awake = now
		return
	}
	if still := now.Sub(last) - max(c.Wait, 0); still >= stillSlack {
		c.Log.WithField("seconds", int(still.Seconds())).Warn("the sidecar was stopped; counting overruns from now on")
		c.Event(nil, "stood still", map[string]any{"seconds": int(still.Seconds())})
		c.Awake = now
	}
}

// ClockSet takes over that the machine's clock was set.
func ClockSet(c *Core, by time.Duration) {
	c.Skew += by
	entry := c.Log.WithField("seconds", int(by.Seconds()))
	entry.Warn("system clock changed, replanning all jobs")
	if by < 0 {
		entry.Warn("slurmctld starts no queued job until the clock reaches the old time or slurmctld restarts")
	}
	c.Event(nil, "clock stepped", map[string]any{"seconds": int(by.Seconds())})
	// times that were read from the old clock
	back := func(times ...*time.Time) {
		for _, t := range times {
			if !t.IsZero() {
				*t = t.Add(-by)
			}
		}
	}
	for _, j := range c.Active {
		back(&j.Begin, &j.Submitted, &j.Accrued, &j.Record.SubmitTime, &j.Record.StartTime, &j.Record.EndTime)
		c.Save(j)
		c.Unsaved[j] = true
	}
	c.Tries.Changed++ // times of the snapshot and of jobs
	if c.Snapshot != nil {
		s := c.Snapshot.Copied() // an attempt may be reading the original
		c.Snapshot, s.Jobs = s, slices.Clone(s.Jobs)
		s.ByID = make(map[slurmctl.JobID]*slurmctl.Job, len(s.Jobs))
		for i := range s.Jobs {
			s.ByID[s.Jobs[i].ID] = &s.Jobs[i]
			back(&s.Jobs[i].SubmitTime, &s.Jobs[i].StartTime, &s.Jobs[i].EndTime)
		}
		for name, r := range s.Reservations {
			back(&r.Start, &r.End)
			s.Reservations[name] = r
		}
	}
	for _, all := range []map[string]slurmctl.Reservation{c.Reservations, c.StuckHolds} {
		for name, r := range all {
			back(&r.Start, &r.End)
			all[name] = r
		}
	}
	c.Delays.Seen = 0
	if back(&c.CountsFrom); by < 0 {
		c.CountsFrom = msg.Later(c.CountsFrom, c.Now.Add(-by))
	}
	c.NextCycle, c.Stepped, c.Pace.Pause = c.Now, c.Now, 0
}

// In translates times of Slurm to the core's clock.
func (c *Core) In(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(-c.Skew)
		}
	}
}

// Wall translates a time of the core to the machine's clock.
func (c *Core) Wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.Skew)
}

// WallSecond does what wall does for a Unix second. It leaves 0, which means none.
func (c *Core) WallSecond(s int64) int64 {
	if s == 0 {
		return 0
	}
	return s + int64(c.Skew/time.Second)
}

// ClockText returns a time of day for people.
func ClockText(c *Core, t time.Time) string { return c.Wall(t).Local().Format(time.TimeOnly) }

// JobIn translates the times of a Slurm job.
func (c *Core) JobIn(r *slurmctl.Job) { c.In(&r.SubmitTime, &r.StartTime, &r.EndTime) }

// ResultIn translates the times in the result of a task.
func (c *Core) ResultIn(result any) any {
	if c.Skew == 0 {
		return result
	}
	switch r := result.(type) {
	case *slurmctl.Job:
		if r == nil {
			return r
		}
		one := *r
		c.JobIn(&one)
		return &one
	case []slurmctl.Job:
		all := slices.Clone(r)
		for i := range all {
			c.JobIn(&all[i])
		}
		return all
	case map[slurmctl.JobID]time.Time:
		all := maps.Clone(r)
		for id, at := range all {
			c.In(&at)
			all[id] = at
		}
		return all
	}
	return result
}

// Out translates the times in an effect to the machine's clock.
func (c *Core) Out(e msg.Effect) msg.Effect {
	if c.Skew == 0 {
		return e
	}
	switch e := e.(type) {
	case msg.AddJob:
		e.Job = c.outJob(e.Job)
		return e
	case msg.SaveJob:
		return msg.SaveJob{c.outJob(e.Job)}
	case msg.SavePlan:
		e.Plan = slices.Clone(e.Plan)
		for i, p := range e.Plan {
			e.Plan[i].Start, e.Plan[i].End = c.Wall(p.Start), c.Wall(p.End)
		}
		return e
	case msg.SaveAllocation:
		e.At = c.Wall(e.At)
		return e
	case msg.AddEvent:
		e.At = c.Wall(e.At)
		return e
	case msg.Settle:
		e.At = c.Wall(e.At)
		return e
	case msg.Task:
		return c.outTask(e)
	}
	return e
}

// outJob does what out does, for the row of a job.
func (c *Core) outJob(j row.Job) row.Job {
	for _, t := range []*time.Time{&j.Submitted, &j.Begin, &j.Started, &j.StepStarted, &j.StepEnded, &j.Ended, &j.Behind} {
		*t = c.Wall(*t)
	}
	j.Offers = slices.Clone(j.Offers)
	for i := range j.Offers {
		o := &j.Offers[i]
		for _, t := range []*int64{&o.Made, &o.Deadline, &o.Answered, &o.Closed} {
			*t = c.WallSecond(*t)
		}
	}
	return j
}

// outTask does what out does, for a task.
func (c *Core) outTask(e msg.Task) msg.Task {
	if e.Intent != nil {
		intent := *e.Intent
		intent.At = c.Wall(intent.At)
		e.Intent = &intent
	}
	switch do := e.Command.(type) {
	case msg.Update:
		do.Change.StartTime, do.Change.EndTime = c.Wall(do.Change.StartTime), c.Wall(do.Change.EndTime)
		e.Command = do
	case msg.ReadRequest:
		do.Try = c.Wall(do.Try)
		e.Command = do
	case msg.Reserve:
		do.Request.Start, do.Request.End = c.Wall(do.Request.Start), c.Wall(do.Request.End)
		e.Command = do
	case msg.Grow:
		do.StaysUntil = c.Wall(do.StaysUntil)
		e.Command = do
	case msg.ChangeHold:
		do.Change.Start, do.Change.End = c.Wall(do.Change.Start), c.Wall(do.Change.End)
		e.Command = do
	}
	return e
}

// CountsStand reports whether slurmctld may report outdated counts of allocated CPUs. After its
// clock was set back, it counts again only once the old time is reached or it restarts (source,
// all versions: last_set_all of the select plugins). What it reports about jobs is always correct.
func CountsStand(c *Core) bool { return !c.Reached(c.Now, c.CountsFrom) }

// Shift moves the plan and step times of a job by a duration.
func Shift(c *Core, j *Job, by time.Duration) {
	if len(j.Plan) > 0 {
		plan := make([]msg.PlannedStep, len(j.Plan))
		for i, p := range j.Plan {
			plan[i] = msg.PlannedStep{Start: p.Start + int64(by/time.Second), End: p.End + int64(by/time.Second), Nodes: p.Nodes}
		}
		c.StorePlan(j, plan)
	}
	if j.Overdue != 0 {
		j.Overdue += int64(by / time.Second)
	}
	for _, at := range []*time.Time{&j.StepStarted, &j.StepEnded} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
	c.Save(j)
}

// NotInFuture corrects the times of a job if the clock was set back while the sidecar was
// down. How much of the step has passed is then unknown.
func (c *Core) NotInFuture(j *Job, now time.Time) {
	if j.State == row.Ended || !j.StepStarted.After(now.Add(ClockSlack)) {
		return
	}
	c.LogJob(j).Warn("the step begins in the future because the clock was set back; assuming that it begins now")
	j.StepStarted, j.StepEnded = now, time.Time{}
	if j.State == row.Waiting {
		j.StepEnded = now
	}
	c.StorePlan(j, nil)
	c.Save(j)
}

// StartedAt returns when Slurm started a running job, by the current clock. Slurm's time is by the
// clock of that moment, which may have been set since. No job has started in the future, or
// before it was last seen queued.
func StartedAt(r *slurmctl.Job, queued, now time.Time) time.Time {
	switch {
	case r.StartTime.After(now.Add(ClockSlack)):
		return now
	case !queued.IsZero() && r.StartTime.Before(queued.Add(-ClockSlack)):
		return queued
	}
	return r.StartTime
}
