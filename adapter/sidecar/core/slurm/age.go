package slurm

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm's priorities of parked jobs include everything except age (slurmctl.Ageing). This file
// adds the age, counted from submission or from the user's own begin time. So evolving jobs are
// ordered, among themselves and beside stock jobs, as if they had been eligible since then.

const (
	// accrualPause is how long the sidecar waits before it again asks since when Slurm counts age.
	accrualPause = 5 * time.Minute
	// calculationLate is how late a calculation of all priorities may be.
	calculationLate = 5 * time.Second
)

// PriorityOf returns the priority used to plan a queued job.
func PriorityOf(c *state.Core, j *state.Job, now time.Time) uint64 {
	r := &j.Record
	if r.Priority == 0 || c.Ageing.Weight == 0 || c.Ageing.Always {
		return r.Priority
	}
	c.Moves = true
	submitted := r.SubmitTime // a requeued job has a new submit time
	if submitted.IsZero() {
		submitted = j.Submitted
	}
	at := agedAt(c, now)
	has := time.Duration(0)
	if !j.Accrued.IsZero() {
		has = at.Sub(j.Accrued)
	}
	return c.Ageing.Priority(r.Priority, r.Nice, has, at.Sub(msg.Later(submitted, j.Begin)))
}

// agedAt returns the time up to which Slurm has counted the age of its stock jobs, or a little
// earlier. So an evolving job counts as older than a stock job only if it really is.
func agedAt(c *state.Core, now time.Time) time.Time {
	return msg.Later(c.Calculated, now.Add(-c.Ageing.Period-calculationLate))
}

// WatchPriorities finds out when Slurm has calculated all priorities: most of the stock jobs
// that age then have another priority than in the previous poll.
func WatchPriorities(c *state.Core, before, after *state.Snapshot) {
	if c.Ageing.Weight == 0 || before == nil {
		return
	}
	changed, same := 0, 0
	for i := range after.Jobs {
		r := &after.Jobs[i]
		b := before.ByID[r.ID]
		if b == nil || r.State != slurmctl.Pending || b.State != slurmctl.Pending || c.Owner(r.ID) != nil || !Queues(r) || b.Priority == 0 ||
			after.Taken.Sub(r.SubmitTime) >= c.Ageing.MaxAge {
			continue
		}
		if r.Priority != b.Priority {
			changed++
		} else {
			same++
		}
	}
	if changed > 0 && changed >= same {
		c.Calculated = before.Taken
	}
}

// EligibleAgain takes over whether Slurm would consider a queued job. If the job waited for
// another job, or was held, its age begins when that is over. If Slurm enforces no limits, a
// job that is held later continues to age.
func EligibleAgain(c *state.Core, j *state.Job, eligible bool, now time.Time) {
	switch {
	case !eligible:
		j.Ineligible = j.Ineligible || !j.Considered || j.Record.Priority > 0 || c.Ageing.Limits
	case j.Ineligible:
		before := j.Begin
		if j.AgesFrom(now); !j.Begin.Equal(before) {
			c.Save(j)
		}
	}
	j.Considered = j.Considered || eligible
}

// ReadAccrual asks since when Slurm counts the age of queued jobs, while this is unknown for
// some of them. Slurm mostly does not count it. But a job planned before the scheduler's first
// pass over it has a begin time to count from.
func ReadAccrual(c *state.Core) {
	if c.Ageing.Weight == 0 || c.Ageing.Always {
		return
	}
	unknown := false
	for _, j := range c.Active {
		unknown = unknown || j.State == row.Queued && !j.AccrualKnown
	}
	if !unknown || !c.Reached(c.Now, c.AccrualRead.Add(accrualPause)) || !c.Work.Room() {
		return
	}
	if c.Ask(nil, "accrual", state.KindAccrual, c.Gently(msg.ReadAccrual{}), state.Args{}) {
		c.AccrualRead = c.Now
	}
}

// SettleAccrual takes over since when Slurm counts the age of jobs.
func SettleAccrual(c *state.Core, _ *state.Job, _ *state.Pending, o msg.Outcome) {
	since, ok := o.Result.(map[slurmctl.JobID]time.Time)
	if o.Err != nil || !ok {
		return // ask again next time
	}
	for _, j := range c.Active {
		if at, ok := since[j.Record.ID]; ok && j.State == row.Queued {
			j.Accrued, j.AccrualKnown = at, !at.IsZero() || c.Ageing.Limits
		}
	}
}
