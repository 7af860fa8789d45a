package planner

import "slices"

// If others have reserved nodes, the start of a job depends on its time limit, which depends on its
// chosen alternative. So a moldable job gets an alternative before anything else is planned. Each
// alternative is planned alone behind the earlier jobs in the list, without expanding other jobs.

// mostSettled bounds the jobs for which that is done, because every alternative costs a plan. Jobs
// far back in the list are given an alternative with the others, with the longest of their limits.
const mostSettled = 4

// settled returns the pool with one profile for each of the first moldable jobs and, by job, which
// one it is, and what all would give.
func (p Pool) settled() (_ Pool, choices map[int]int, options map[int][]Option, _ error) {
	noX, err := StrategyByName("noX")
	if err != nil {
		return p, nil, nil, err
	}
	choices, options = map[int]int{}, map[int][]Option{}
	p.Jobs = slices.Clone(p.Jobs)
	for i, job := range p.Jobs {
		if job.Fixed || !job.IsMoldable() {
			continue
		}
		if len(choices) == mostSettled {
			for _, limits := range job.AlternativeLimits {
				if limitsOf := (PoolJob{Limits: limits}); limitsOf.reach() > p.Jobs[i].reach() {
					p.Jobs[i].Limits = limits
				}
			}
			continue
		}
		best := -1
		for k := range job.Choices() {
			trial := p
			trial.Jobs = append(slices.Clone(p.Jobs[:i]), job.with(k))
			planned, _, err := trial.planReserved(noX)
			if err != nil {
				return p, nil, nil, err
			}
			o := Option{Placement: planned[i].Placement, Fits: planned[i].Unfit == ""}
			o.Choice = k
			options[i] = append(options[i], o)
			if o.Fits && (best < 0 || job.Prefers(o.Placement, options[i][best].Placement)) {
				best = k
			}
		}
		choices[i] = max(best, 0)
		p.Jobs[i] = job.with(choices[i])
	}
	return p, choices, options, nil
}

// with returns the job with only one of its profiles.
func (j PoolJob) with(choice int) PoolJob {
	j.Job = j.Settled(choice)
	if choice < len(j.AlternativeLimits) {
		j.Limits = j.AlternativeLimits[choice]
	}
	j.AlternativeLimits = nil
	return j
}

// planMoldable does what planReserved does, for a pool with moldable jobs.
func (p Pool) planMoldable(s Strategy) ([]Planned, int, error) {
	settled, choices, options, err := p.settled()
	if err != nil {
		return nil, 0, err
	}
	planned, rounds, err := settled.planReserved(s)
	if err != nil {
		return nil, 0, err
	}
	for i, k := range choices {
		if planned[i].Unfit == "" {
			planned[i].Choice, planned[i].Options = k, options[i]
			options[i][k] = Option{Placement: planned[i].Placement, Fits: true}
		}
	}
	return planned, rounds, nil
}
