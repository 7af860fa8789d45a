package msg

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm's clock, that of slurmctld's host, may be set while jobs run, and a machine may sleep. A step lasts for a
// duration, not until a time of day. So the core has its own steady clock, which is never set. The
// shell passes its time to every step, and reports when Slurm's clock was set ([msg.ClockSet]).
// Slurm, the database and all texts for people use Slurm's clock. Only Clock translates
// their times, where they enter and leave the core. Times that Slurm itself keeps (the end of a job
// or a reservation, a user's begin time) therefore move on the core's clock. If a job's limit
// becomes too short for its plan, the job gets a longer limit.

// Clock translates between the core's clock and Slurm's.
type Clock struct {
	Skew time.Duration // how far Slurm's clock is ahead of the core's
}

// In translates times of Slurm to the core's clock.
func (c Clock) In(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(-c.Skew)
		}
	}
}

// Wall translates a time of the core to Slurm's clock.
func (c Clock) Wall(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(c.Skew)
}

// FromWall translates a Unix second of Slurm's clock to the core's; 0 is none.
func (c Clock) FromWall(second int64) time.Time {
	if second <= 0 {
		return time.Time{}
	}
	return time.Unix(second, 0).Add(-c.Skew)
}

// WallSecond does what wall does for a Unix second. It leaves 0, which means none.
func (c Clock) WallSecond(s int64) int64 {
	if s == 0 {
		return 0
	}
	return s + int64(c.Skew/time.Second)
}

// JobIn translates the times of a Slurm job.
func (c Clock) JobIn(r *slurmctl.Job) { c.In(&r.SubmitTime, &r.StartTime, &r.EndTime) }

// ResultIn translates the times in the result of a task.
func (c Clock) ResultIn(result any) any {
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

// Out translates the times in an effect to Slurm's clock.
func (c Clock) Out(e Effect) Effect {
	if c.Skew == 0 {
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
			e.Plan[i].Start, e.Plan[i].End = c.Wall(p.Start), c.Wall(p.End)
		}
		return e
	case SaveAllocation:
		e.At = c.Wall(e.At)
		return e
	case AddEvent:
		e.At = c.Wall(e.At)
		return e
	case Settle:
		e.At = c.Wall(e.At)
		return e
	case SaveHold:
		c.out(&e.Hold.Planned, &e.Hold.Made, &e.Hold.Changed, &e.Hold.Begun, &e.Hold.Ended, &e.Hold.Counted)
		return e
	case SavePromise:
		c.out(&e.Promise.At, &e.Promise.Asked, &e.Promise.Decided)
		return e
	case SaveDelay:
		c.out(&e.Delay.Submitted, &e.Delay.Since, &e.Delay.Could, &e.Delay.Settled)
		return e
	case SaveGrowDelay:
		if e.Row.User {
			c.out(&e.Row.Since)
		}
		return e
	case Task:
		return c.outTask(e)
	}
	return e
}

// out translates times to Slurm's clock.
func (c Clock) out(times ...*time.Time) {
	for _, t := range times {
		*t = c.Wall(*t)
	}
}

// outJob does what out does, for the row of a job.
func (c Clock) outJob(j row.Job) row.Job {
	c.out(&j.Submitted, &j.Begin, &j.Started, &j.StepStarted, &j.StepEnded, &j.Ended, &j.Behind)
	j.AimSince, j.AimStart = c.WallSecond(j.AimSince), c.WallSecond(j.AimStart)
	if g := j.Growing; g != nil {
		wall := *g
		wall.Postpones = slices.Clone(g.Postpones)
		for i := range wall.Postpones {
			wall.Postpones[i].Would = c.WallSecond(g.Postpones[i].Would)
		}
		j.Growing = &wall
	}
	j.Offers = slices.Clone(j.Offers)
	for i := range j.Offers {
		o := &j.Offers[i]
		for _, t := range []*int64{&o.Made, &o.Deadline, &o.Until, &o.Back, &o.Answered, &o.Closed} {
			*t = c.WallSecond(*t)
		}
	}
	return j
}

// outTask does what out does, for a task.
func (c Clock) outTask(e Task) Task {
	if e.Intent != nil {
		intent := *e.Intent
		intent.At = c.Wall(intent.At)
		e.Intent = &intent
	}
	switch do := e.Command.(type) {
	case Update:
		do.Change.StartTime, do.Change.EndTime = c.Wall(do.Change.StartTime), c.Wall(do.Change.EndTime)
		e.Command = do
	case ReadRequest:
		do.Try = c.Wall(do.Try)
		e.Command = do
	case Reserve:
		do.Request.Start, do.Request.End = c.Wall(do.Request.Start), c.Wall(do.Request.End)
		e.Command = do
	case Grow:
		do.StaysUntil = c.Wall(do.StaysUntil)
		e.Command = do
	case ChangeHold:
		do.Change.Start, do.Change.End = c.Wall(do.Change.Start), c.Wall(do.Change.End)
		e.Command = do
	}
	return e
}
