package planner

import (
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// A batch system starts a job only while its licences are free, and counts them until it ends. A strategy knows only nodes. So
// a job starts later if a licence is in use when the strategy has it start: once it is free for as long as the job may run, as
// far as is known. The pool is then planned again. Earlier jobs in the list get their licences first.

// licenseRounds is how often a pool is planned again for licences.
const licenseRounds = 8

const (
	// notLicensed is why a job has no plan that finds no time for its licences within licenseRounds.
	notLicensed = "too many other jobs wait for its licences: it is planned again"
	// neverLicensed is why a job has no plan whose licences are never free.
	neverLicensed = "its licences do not become free, as far as is known"
)

// License is a licence that jobs of a pool may need.
type License struct {
	Total int
	Used  []LicenseUse // by others than the pool's jobs
}

// LicenseUse is the use of a number of a licence during [Start, End).
type LicenseUse struct {
	Start, End int64
	Count      int
}

// LicenseNeed is how many of a licence a job needs from its start to its end.
type LicenseNeed struct {
	License int // in the pool's list
	Count   int
}

// licensed plans a pool by a function, so that each waiting job starts when its licences are free.
func (p Pool) licensed(s Strategy, plan func(Pool, Strategy) ([]Planned, int, error)) ([]Planned, int, error) {
	planned, rounds, err := plan(p, s)
	if err != nil || !p.needsLicenses() {
		return planned, rounds, err
	}
	jobs := slices.Clone(p.Jobs)
	for round := 1; ; round++ {
		late := p.unlicensed(planned)
		if len(late) == 0 {
			return planned, rounds, nil
		}
		rounds++ // the plan depends on the time
		if round > licenseRounds {
			for j := range late {
				planned[j] = Planned{Unfit: notLicensed}
			}
			return planned, rounds, nil
		}
		moved, with := p, s
		if asksOnce(s) {
			with = keepingOf(s, p.Jobs, planned)
		}
		for j, at := range late {
			jobs[j].Submit = at
		}
		moved.Jobs = jobs
		if planned, _, err = plan(moved, with); err != nil {
			return nil, rounds, err
		}
	}
}

func (p Pool) needsLicenses() bool {
	return slices.ContainsFunc(p.Jobs, func(j PoolJob) bool { return len(j.Licenses) > 0 })
}

// unlicensed returns the waiting jobs that are planned to start while a licence is in use, with the first second at which all of
// their licences are free for as long as each may run. It takes the plan from jobs that find no such second.
func (p Pool) unlicensed(planned []Planned) map[int]int64 {
	used := p.licenseTimes()
	late := map[int]int64{}
	for j, job := range p.Jobs {
		if one := planned[j]; len(job.Licenses) > 0 && !job.Fixed && one.Unfit == "" {
			at := p.licensesFree(used, job.Licenses, one.Start, max(one.End()-one.Start, job.reach()))
			if at > exact.Horizon {
				planned[j] = Planned{Unfit: neverLicensed}
				continue
			}
			if at > one.Start {
				late[j] = at
			}
			for _, need := range job.Licenses {
				used[need.License].Add(at, exact.AddTime(at, one.End()-one.Start), need.Count)
			}
		}
	}
	return late
}

// licenseTimes returns when how many of each licence are in use.
func (p Pool) licenseTimes() []*Timeline {
	used := make([]*Timeline, len(p.Licenses))
	for i, l := range p.Licenses {
		used[i] = &Timeline{}
		for _, u := range l.Used {
			used[i].Add(u.Start, u.End, u.Count)
		}
	}
	return used
}

// licensesFree returns the first second from one on at which all licences are free for a duration, or Forever.
func (p Pool) licensesFree(used []*Timeline, needs []LicenseNeed, from, duration int64) int64 {
	for again := true; again; {
		again = false
		for _, need := range needs {
			at := used[need.License].EarliestFree(from, need.Count, duration, p.Licenses[need.License].Total)
			if at == Forever {
				return Forever
			}
			again = again || at > from
			from = at
		}
	}
	return from
}
