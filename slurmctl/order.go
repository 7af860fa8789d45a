package slurmctl

import "strconv"

// What decides the order of jobs besides a job's priority.

// Tier returns the PriorityTier of a partition, or 1 if unknown. Slurm considers all jobs of a
// higher tier before those of a lower one, whatever their priorities
// (src/slurmctld/job_scheduler.c, sort_job_queue2).
func (l *Limits) Tier(partition string) int {
	if l != nil && l.Parts[partition] != nil {
		if n, err := strconv.Atoi(l.Parts[partition].Tier); err == nil {
			return n
		}
	}
	return 1
}

// Accruing returns how many of the jobs that share an allowance with the subject's job may gain age
// at once. It also returns an arbitrary name for that set of jobs, or "" if there is no bound. The
// first limit that is set decides: GrpJobsAccrue, MaxJobsAccruePerAccount, and PerUser of the job's
// QOS, then GrpJobsAccrue and MaxJobsAccrue of its association, then GrpJobsAccrue of the accounts
// up to the root (src/slurmctld/acct_policy.c, _get_accrue_limits).
func (l *Limits) Accruing(s Subject) (most int, among string) {
	if !l.BoundsAccrual() {
		return 0, ""
	}
	if q := l.QOS[s.QOS]; q != nil {
		for _, b := range []struct{ name, of string }{{"GrpJobsAccrue", ""}, {"MaxJobsAccruePA", " account " + s.Account}, {"MaxJobsAccruePU", " user " + s.User}} {
			if n := q.at(b.name).Most; n != noLimit {
				return int(n), "QOS " + s.QOS + b.of
			}
		}
	}
	for i, a := range l.path(s) {
		if n := a.at("GrpJobsAccrue").Most; n != noLimit {
			return int(n), a.who()
		}
		if n := a.at("MaxJobsAccrue").Most; i == 0 && n != noLimit {
			return int(n), a.who()
		}
	}
	return 0, ""
}

// BoundsAccrual reports whether Accruing returns a bound for any subject.
func (l *Limits) BoundsAccrual() bool { return l != nil && l.Enforced && l.Accrual }

// boundsAccrual computes BoundsAccrual.
func (l *Limits) boundsAccrual() bool {
	bounds := func(s *limitSet) bool {
		for _, name := range []string{"GrpJobsAccrue", "MaxJobsAccrue", "MaxJobsAccruePA", "MaxJobsAccruePU"} {
			if s.at(name).Most != noLimit {
				return true
			}
		}
		return false
	}
	for i := range l.Assocs {
		if bounds(&l.Assocs[i]) {
			return true
		}
	}
	for _, q := range l.QOS {
		if bounds(q) {
			return true
		}
	}
	return false
}
