package core

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A machine's clock may be set while jobs run, and a machine may sleep. Steps last for a
// time, not until one. So the core's own clock is even: it goes on as time does and is never
// set. The shell gives it with every step, and tells when the machine's clock was set
// ([ClockSet]). By that one are the times in Slurm, in the database and in what people read:
// they are translated where they come in and go out, here and nowhere else. What Slurm keeps
// itself (when a job ends, when a reservation does, a begin time that a user gave) thereby
// moves in the core's time: a job whose limit is too short for its plan gets a longer one.

// stillSlack is for how long nothing may go on though the core was to be called, without
// it being suspected to have slept.
const stillSlack = 10 * time.Second

// clockSlack is by how much times of Slurm may be off.
const clockSlack = 2 * time.Second

// watchStill finds out whether nothing went on though the core was to be called.
func (c *Core) watchStill(now time.Time) {
	last := c.tick
	c.tick = now
	if last.IsZero() {
		c.awake = now
		return
	}
	if still := now.Sub(last) - max(c.wait, 0); still >= stillSlack {
		c.log.WithField("seconds", int(still.Seconds())).Warn("the sidecar stood still; overruns are counted from now on")
		c.event(nil, "stood still", map[string]any{"seconds": int(still.Seconds())})
		c.awake = now
	}
}

// clockSet takes over that the machine's clock was set.
func (c *Core) clockSet(by time.Duration) {
	c.skew += by
	entry := c.log.WithField("seconds", int(by.Seconds()))
	entry.Warn("the machine's clock was set: all is planned anew")
	if by < 0 {
		entry.Warn("slurmctld starts no queued job until the clock is where it was, unless it is restarted")
	}
	c.event(nil, "clock stepped", map[string]any{"seconds": int(by.Seconds())})
	// what was read by the clock as it was
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
		s := c.snapshot.copied() // an attempt may read the other one
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

// in translates times of Slurm.
func (c *Core) in(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(-c.skew)
		}
	}
}

// wall is a time of the core's by the machine's clock.
func (c *Core) wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.skew)
}

// wallSecond is the same for a Unix second; 0: none.
func (c *Core) wallSecond(s int64) int64 {
	if s == 0 {
		return 0
	}
	return s + int64(c.skew/time.Second)
}

// clockText is a time as people read it.
func (c *Core) clockText(t time.Time) string { return c.wall(t).Local().Format(time.TimeOnly) }

// jobIn translates a job of Slurm's.
func (c *Core) jobIn(r *slurmctl.Job) { c.in(&r.SubmitTime, &r.StartTime, &r.EndTime) }

// resultIn translates what came of a task.
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

// out translates what goes out.
func (c *Core) out(e Effect) Effect {
	if c.skew == 0 {
		return e
	}
	job := func(j row.Job) row.Job {
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
	switch e := e.(type) {
	case AddJob:
		e.Job = job(e.Job)
		return e
	case SaveJob:
		return SaveJob{job(e.Job)}
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
	return e
}

// countsStand reports whether slurmctld may tell of CPUs allocated on nodes as they were:
// after its clock was set back it counts anew only once the old time is reached again,
// or it is started anew (source, all versions: last_set_all of the select plugins). What
// its jobs have is true all the time.
func (c *Core) countsStand() bool { return c.now.Before(c.countsFrom) }

// shift moves what a job is to do in time.
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

// notInFuture puts right a job's times where the clock was set back while the
// sidecar was down: how much of the step has passed is not known.
func (c *Core) notInFuture(j *job, now time.Time) {
	if j.State == row.Ended || !j.StepStarted.After(now.Add(clockSlack)) {
		return
	}
	c.logJob(j).Warn("its step begins in the future: the clock was set back; it is taken to begin now")
	j.StepStarted, j.StepEnded = now, time.Time{}
	if j.State == row.Waiting {
		j.StepEnded = now
	}
	c.storePlan(j, nil)
	c.save(j)
}

// startedAt is when Slurm started a job that runs, by the clock of now. Slurm's word is
// by the clock of then, which may have been set since: no job has started in the future,
// nor before it was last seen queued.
func startedAt(r *slurmctl.Job, queued, now time.Time) time.Time {
	switch {
	case r.StartTime.After(now.Add(clockSlack)):
		return now
	case !queued.IsZero() && r.StartTime.Before(queued.Add(-clockSlack)):
		return queued
	}
	return r.StartTime
}
