package slurmctl

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Ageing is how a job's priority rises while it is eligible and waits. The zero value:
// it does not (priority/basic, or age has no weight).
//
// Source: src/plugins/priority/multifactor/priority_multifactor.c, the same from 20.11
// to 26.05. Age is the one factor that a job with a begin time in the future is denied:
// the others are calculated for every pending job. It counts from AccrueTime, set once,
// by the scheduler's first pass, to the begin time of then (src/slurmctld/acct_policy.c);
// where AccountingStorageEnforce has limits, to nothing before the begin time, anew
// after every change of that, and for as many jobs as MaxJobsAccrue lets.
type Ageing struct {
	Weight float64       // of the age factor
	MaxAge time.Duration // at which the factor is 1
	Period time.Duration // between two calculations of all priorities
	Always bool          // ACCRUE_ALWAYS: from submission on, eligible or not: Slurm's own priorities do
	Limits bool          // limits are enforced: a job on hold ages anew from its release on
}

// Ageing is that of the configuration.
func (c Config) Ageing() Ageing {
	if c.plugin("PriorityType") != "multifactor" {
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
		return Ageing{} // better none than one that is too large
	}
	if p, err := parseDuration(c.Values["PriorityCalcPeriod"]); err == nil && p > 0 {
		a.Period = p
	}
	return a
}

// points is what age adds to a priority.
func (a Ageing) points(age time.Duration) float64 {
	switch {
	case age <= 0 || a.MaxAge == Unlimited:
		return 0
	case age >= a.MaxAge:
		return a.Weight
	}
	return a.Weight * float64(age/time.Second) / float64(a.MaxAge/time.Second)
}

// Priority is the priority of a job that Slurm shows with this one and this nice value,
// having counted the age has, if its age were due. A job on hold (0) stays so.
//
// Slurm shows no priority below 1, so of one whose nice value takes it lower only the
// least that its other factors add up to is known: nothing. Fractions that Slurm has
// dropped are lost, so the result may be 1 too low; it is never too high.
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

// AccrueTimes gives, for all pending jobs, since when Slurm counts their age; zero: it does
// not yet. It takes one squeue.
func (c *Client) AccrueTimes(ctx context.Context) (map[JobID]time.Time, error) {
	since := map[JobID]time.Time{}
	var at time.Time
	v := view{table: newTable(2), columns: []column{
		{long: "AccrueTime", set: func(_ *Job, s string) (err error) { at, err = parseTime(s); return }},
		{long: "JobID", set: func(_ *Job, s string) error {
			id, err := parseID(s)
			since[id] = at
			return err
		}},
	}}
	v.env = "SQUEUE_FORMAT2=" + v.long("AccrueTime", "JobID")
	_, err := c.squeue(ctx, v, "--states=PENDING")
	return since, err
}
