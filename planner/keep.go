package planner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Partial is a strategy that tells at once of all jobs that fit nowhere.
type Partial interface {
	Strategy
	// PlanPartly places the jobs of a valid problem; those that fit nowhere are
	// in unfit, by index, each with the reason, and their placements not read.
	PlanPartly(Problem) (s Schedule, unfit map[int]string, err error)
}

// planPartly plans what can be planned.
func planPartly(s Strategy, p Problem) (Schedule, map[int]string, error) {
	if s, ok := s.(Partial); ok {
		return s.PlanPartly(p)
	}
	return withoutUnfit(p, nil, func(p Problem, _ []int) (Schedule, error) { return s.Plan(p) })
}

// keepPartly keeps what can be kept of a plan in which some jobs may be unfit.
func keepPartly(p Problem, plan Schedule, unfit map[int]string, limit ExpandLimit) (Schedule, map[int]string, error) {
	return withoutUnfit(p, unfit, func(p Problem, index []int) (Schedule, error) {
		fit := make(Schedule, len(index))
		for i, j := range index {
			fit[i] = plan[j]
		}
		return Keep(p, fit, limit)
	})
}

// withoutUnfit plans a problem without the jobs that are unfit, or turn out to be;
// plan is told the indices of the others. Their placements are in the problem's
// order.
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

// asksOnce tells whether a strategy is to be asked once for a pool. Its plans take
// long to make, or to send: where they do not do node by node, Keep mends them.
func asksOnce(s Strategy) bool {
	o, ok := s.(interface{ AsksOnce() bool })
	return ok && o.AsksOnce()
}

// AsksOnce tells that searching again for every node in the way takes too long.
func (Search) AsksOnce() bool { return true }

// Keep makes a plan like one that was made when fewer nodes were in use. In list
// order every job keeps its placement where the jobs before it leave room for that,
// and else is fitted anew (Algorithm 2), so that no job gives way to one behind it.
// Then jobs that complete earlier with the nodes that were given up do so; see
// [Live.Improve]. limit is the expand limit of jobs that have none of their own.
//
// Where all placements can be kept the plan is the same. The error is a *FitError.
// It takes about as long as planning the jobs that lose their placements, and
// O(log n) for each of the n others.
func Keep(p Problem, plan Schedule, limit ExpandLimit) (Schedule, error) {
	l := liveOver(p, list{name: "kept", limit: limit})
	l.plan, l.ended = make(Schedule, len(plan)), make([]bool, len(plan))
	for i, j := range p.Jobs {
		placed := plan[i]
		if !hasRoom(l.res, p.Nodes, placed) {
			if !l.fit.fit(l.res, p.Nodes, j.Profile, l.list.options(j)) {
				return nil, &FitError{Job: i, ID: j.ID, Reason: nowhere}
			}
			l.freed = note(l.freed, Span{Start: placed.Start, End: placed.End()})
			placed = l.fit.placement(j.Profile)
		}
		l.plan[i] = placed
		l.add(placed)
	}
	l.Improve()
	return l.plan, nil
}

// hasRoom tells whether a placement's nodes are to be had.
func hasRoom(res *Timeline, capacity int, placed Placement) bool {
	at := placed.Start
	for _, s := range placed.Steps {
		if res.Max(at, at+s.Duration)+s.Nodes > capacity {
			return false
		}
		at += s.Duration
	}
	return true
}
