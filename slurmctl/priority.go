package slurmctl

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Ageing describes how a job's priority rises while it is eligible and waits. The zero value means
// that it does not (priority/basic, or age has no weight).
//
// Source: src/plugins/priority/multifactor/priority_multifactor.c, the same from 20.11 to 26.05.
// Age is the only factor that Slurm withholds from a job with a begin time in the future; it
// computes the other factors for every pending job. Age counts from AccrueTime. The scheduler's
// first pass sets AccrueTime once, to the begin time at that moment (src/slurmctld/acct_policy.c).
// If AccountingStorageEnforce has limits, AccrueTime is unset before the begin time, starts again
// after every change of it, and is set for at most MaxJobsAccrue jobs.
type Ageing struct {
	Weight float64       // of the age factor
	MaxAge time.Duration // age at which the factor is 1
	Period time.Duration // between two computations of all priorities
	Always bool          // ACCRUE_ALWAYS: age counts from submission, eligible or not, so Slurm's own priorities are right
	Limits bool          // limits are enforced: a held job's age restarts at its release
}

// ByArrival reports whether each job that comes ranks below all that wait in its partition's tier (priority/basic).
func (c Config) ByArrival() bool { return c.plugin("PriorityType") != "multifactor" }

// Ageing returns the ageing set by the configuration.
func (c Config) Ageing() Ageing {
	if c.ByArrival() {
		return Ageing{}
	}
	weight, err := strconv.ParseUint(c.Values["PriorityWeightAge"], 10, 32)
	if err != nil || weight == 0 {
		return Ageing{}
	}
	a := Ageing{Weight: float64(weight), Period: 5 * time.Minute,
		Always: slices.Contains(c.List("PriorityFlags"), "ACCRUE_ALWAYS"),
		Limits: slices.ContainsFunc(c.List("AccountingStorageEnforce"), func(s string) bool { return s == "limits" || s == "safe" })}
	if a.MaxAge, err = parseDuration(c.Values["PriorityMaxAge"]); err != nil {
		return Ageing{} // too little age is better than too much
	}
	if p, err := parseDuration(c.Values["PriorityCalcPeriod"]); err == nil && p > 0 {
		a.Period = p
	}
	return a
}

// points returns what age adds to a priority.
func (a Ageing) points(age time.Duration) float64 {
	switch {
	case age <= 0 || a.MaxAge == Unlimited:
		return 0
	case age >= a.MaxAge:
		return a.Weight
	}
	return a.Weight * float64(age/time.Second) / float64(a.MaxAge/time.Second)
}

// Priority returns the priority that a job would have if its age were due, given the shown priority
// and nice value at age has. A held job (0) stays held.
//
// Slurm shows no priority below 1. If a nice value pushes a priority below that, the other factors
// are unknown and count as nothing. Fractions that Slurm dropped are lost, so the result may be 1
// too low; it is never too high.
func (a Ageing) Priority(shown uint64, nice int, has, due time.Duration) uint64 {
	more := a.points(due) - a.points(has)
	if shown == 0 || more <= 0 {
		return shown
	}
	p := float64(shown)
	if shown == 1 && nice >= 0 {
		p = -float64(nice)
	}
	return uint64(min(max(p+more, 1), 1<<32-1))
}

// AccrueTimes returns, for all pending jobs, since when Slurm counts their age; zero if it does not
// yet. It takes one squeue.
func (c *Client) AccrueTimes(ctx context.Context) (map[JobID]time.Time, error) {
	since := map[JobID]time.Time{}
	var at time.Time
	v := view{table: newTable(2), columns: []column{
		{long: "AccrueTime", set: func(_ *Job, b []byte, _ *kept) (err error) { at, err = readTime(b); return }},
		{long: "JobID", set: func(_ *Job, b []byte, _ *kept) error {
			id, err := readID(b)
			since[id] = at
			return err
		}},
	}}
	v.env = "SQUEUE_FORMAT2=" + v.long("AccrueTime", "JobID")
	_, err := c.squeue(ctx, v, "--states=PENDING")
	return since, err
}
