package planner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Partial is a strategy that reports at once all jobs that fit nowhere.
type Partial interface {
	Strategy
	// PlanPartly places the jobs of a valid problem. unfit holds the jobs that fit nowhere, by
	// index, with the reason; their placements are ignored.
	PlanPartly(Problem) (s Schedule, unfit map[int]string, err error)
}

// planPartly plans as many jobs as possible.
func planPartly(s Strategy, p Problem) (Schedule, map[int]string, error) {
	if p.IsMoldable() && !KnowsAlternatives(s) {
		return planSettled(s, p)
	}
	if s, ok := s.(Partial); ok {
		return s.PlanPartly(p)
	}
	return withoutUnfit(p, nil, func(p Problem, _ []int) (Schedule, error) { return s.Plan(p) })
}

// planSettled lets a strategy without alternatives plan each moldable job with the profile that it
// would have in list order, without expansion.
func planSettled(s Strategy, p Problem) (Schedule, map[int]string, error) {
	noX, err := StrategyByName("noX")
	if err != nil {
		return nil, nil, err
	}
	chosen, _, err := planPartly(noX, p)
	if err != nil {
		return nil, nil, err
	}
	schedule, unfit, err := planPartly(s, p.Settled(chosen))
	for i := range schedule {
		schedule[i].Choice = chosen[i].Choice
	}
	return schedule, unfit, err
}

// keepPartly keeps as much as possible of a plan in which some jobs may be unfit.
func keepPartly(p Problem, plan Schedule, unfit map[int]string, limit ExpandLimit) (Schedule, map[int]string, error) {
	return withoutUnfit(p, unfit, func(p Problem, index []int) (Schedule, error) {
		fit := make(Schedule, len(index))
		for i, j := range index {
			fit[i] = plan[j]
		}
		return Keep(p, fit, limit)
	})
}

// withoutUnfit plans a problem without the jobs that are unfit or turn out to be. plan gets the
// indices of the others. Their placements are in the problem's order.
func withoutUnfit(p Problem, unfit map[int]string, plan func(Problem, []int) (Schedule, error)) (Schedule, map[int]string, error) {
	all := p.Jobs
	unfit = maps.Clone(unfit)
	p.Jobs = make([]Job, 0, len(all))
	index := make([]int, 0, len(all))
	for i, j := range all {
		if _, ok := unfit[i]; !ok {
			p.Jobs, index = append(p.Jobs, j), append(index, i)
		}
	}
	s := make(Schedule, len(all))
	for len(index) > 0 {
		some, err := plan(p, index)
		var e *FitError
		if errors.As(err, &e) && e.Job >= 0 && e.Job < len(index) {
			if unfit == nil {
				unfit = make(map[int]string)
			}
			unfit[index[e.Job]] = e.Reason
			index, p.Jobs = slices.Delete(index, e.Job, e.Job+1), slices.Delete(p.Jobs, e.Job, e.Job+1)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if len(some) != len(index) {
			return nil, nil, fmt.Errorf("%d placements for %d jobs", len(some), len(index))
		}
		for k, i := range index {
			s[i] = some[k]
		}
		break
	}
	return s, unfit, nil
}

// asksOnce reports whether a strategy should be called once per pool. Its plans take long to make
// or to send. If they do not work node by node, Keep repairs them.
func asksOnce(s Strategy) bool {
	o, ok := s.(interface{ AsksOnce() bool })
	return ok && o.AsksOnce()
}
