package core

import (
	"time"

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

// priorityOf returns the priority used to plan a queued job.
func (c *Core) priorityOf(j *job, now time.Time) uint64 {
	r := &j.record
	if r.Priority == 0 || c.ageing.Weight == 0 || c.ageing.Always {
		return r.Priority
	}
	submitted := r.SubmitTime // a requeued job has a new submit time
	if submitted.IsZero() {
		submitted = j.Submitted
	}
	at := c.agedAt(now)
	has := time.Duration(0)
	if !j.accrued.IsZero() {
		has = at.Sub(j.accrued)
	}
	return c.ageing.Priority(r.Priority, r.Nice, has, at.Sub(Later(submitted, j.Begin)))
}

// agedAt returns the time up to which Slurm has counted the age of its stock jobs, or a little
// earlier. So an evolving job counts as older than a stock job only if it really is.
func (c *Core) agedAt(now time.Time) time.Time {
	return Later(c.calculated, now.Add(-c.ageing.Period-calculationLate))
}

// watchPriorities finds out when Slurm has calculated all priorities: most of the stock jobs
// that age then have another priority than in the previous poll.
func (c *Core) watchPriorities(before, after *snapshot) {
	if c.ageing.Weight == 0 || before == nil {
		return
	}
	changed, same := 0, 0
	for i := range after.jobs {
		r := &after.jobs[i]
		b := before.byID[r.ID]
		if b == nil || r.State != slurmctl.Pending || b.State != slurmctl.Pending || c.owner(r.ID) != nil || !queues(r) || b.Priority == 0 ||
			after.taken.Sub(r.SubmitTime) >= c.ageing.MaxAge {
			continue
		}
		if r.Priority != b.Priority {
			changed++
		} else {
			same++
		}
	}
	if changed > 0 && changed >= same {
		c.calculated = before.taken
	}
}

// eligibleAgain takes over whether Slurm would consider a queued job. If the job waited for
// another job, or was held, its age begins when that is over. If Slurm enforces no limits, a
// job that is held later continues to age.
func (c *Core) eligibleAgain(j *job, eligible bool, now time.Time) {
	switch {
	case !eligible:
		j.ineligible = j.ineligible || !j.considered || j.record.Priority > 0 || c.ageing.Limits
	case j.ineligible:
		j.ineligible = false
		if now.After(j.Begin) {
			j.Begin = now
			c.save(j)
		}
	}
	j.considered = j.considered || eligible
}

// readAccrual asks since when Slurm counts the age of queued jobs, while this is unknown for
// some of them. Slurm mostly does not count it. But a job planned before the scheduler's first
// pass over it has a begin time to count from.
func (c *Core) readAccrual() {
	if c.ageing.Weight == 0 || c.ageing.Always || c.now.Sub(c.accrualRead) < accrualPause || !c.work.room() {
		return
	}
	unknown := false
	for _, j := range c.active {
		unknown = unknown || j.State == row.Queued && !j.accrualKnown
	}
	if !unknown {
		return
	}
	if c.ask(nil, "accrual", KindAccrual, c.gently(ReadAccrual{}), Args{}) {
		c.accrualRead = c.now
	}
}

// settleAccrual takes over since when Slurm counts the age of jobs.
func (c *Core) settleAccrual(_ *job, _ *Pending, o Outcome) {
	since, ok := o.Result.(map[slurmctl.JobID]time.Time)
	if o.Err != nil || !ok {
		return // ask again next time
	}
	for _, j := range c.active {
		if at, ok := since[j.record.ID]; ok && j.State == row.Queued {
			j.accrued, j.accrualKnown = at, !at.IsZero() || c.ageing.Limits
		}
	}
}
