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
// Then jobs that complete earlier with the nodes that were given up do so, once through the
// list. limit is the expand limit of jobs that have none of their own.
//
// Where all placements can be kept the plan is the same. The error is a *FitError.
// It takes about as long as planning the jobs that lose their placements, and
// O(log n) for each of the n others.
func Keep(p Problem, plan Schedule, limit ExpandLimit) (Schedule, error) {
	k := newKeeper(p, limit)
	for i, j := range p.Jobs {
		placed := plan[i]
		if !hasRoom(k.res, p.Nodes, placed) {
			if !k.fit.fit(k.res, p.Nodes, j.Profile, k.list.options(j)) {
				return nil, &FitError{Job: i, ID: j.ID, Reason: nowhere}
			}
			k.freed = note(k.freed, Span{Start: placed.Start, End: placed.End()})
			placed = k.fit.placement(j.Profile)
		}
		k.plan[i] = placed
		k.add(placed)
	}
	for i := 0; i < len(k.plan) && len(k.freed) > 0; i++ {
		k.improve(i)
	}
	return k.plan, nil
}

// keeper is one call of Keep.
type keeper struct {
	problem Problem
	list    list
	res     *Timeline
	fit     *fitter
	plan    Schedule
	freed   []Span // stretches with fewer nodes in use than in the plan that is kept
}

func newKeeper(p Problem, limit ExpandLimit) *keeper {
	k := &keeper{problem: p, list: list{name: "kept", limit: limit}, res: p.Timeline(), fit: &fitter{until: horizon + 1},
		plan: make(Schedule, len(p.Jobs))}
	steps, seconds := int64(1), int64(gridCellsPerStep)
	for _, j := range p.Jobs {
		steps += int64(len(j.Profile))
		seconds = addTime(seconds, j.Profile.Duration())
	}
	k.fit.grid = new(grid)
	p.grid(k.fit.grid, k.res, seconds/steps/gridCellsPerStep)
	return k
}

func (k *keeper) add(p Placement) {
	k.res.AddPlacement(p)
	k.fit.grid.update(p.Start, p.End())
}

func (k *keeper) remove(p Placement) {
	k.res.RemovePlacement(p)
	k.fit.grid.update(p.Start, p.End())
}

// note appends a span; beyond some number the last two become one, which is less
// exact but does no harm.
func note(spans []Span, s Span) []Span {
	if k := len(spans) - 1; k >= 32 {
		spans[k].Start, spans[k].End = min(spans[k].Start, s.Start), max(spans[k].End, s.End)
		return spans
	}
	return append(spans, s)
}

// improve places a job anew if it completes earlier with the nodes that were freed. A
// better placement must use some of them, so it is tried only near there: where nothing
// moves, about a microsecond a job.
func (k *keeper) improve(i int) {
	job, placed := k.problem.Jobs[i], k.plan[i]
	o := k.list.options(job)
	first, until := Forever, dawn
	for _, s := range k.freed {
		if s.Start < placed.End() {
			first, until = min(first, s.Start), max(until, s.End)
		}
	}
	if first == Forever {
		return
	}
	// It must reach a freed stretch, and start before the last of them ends.
	longest := job.Profile.Duration()
	if k.list.limit > 1 || o.Limit > 1 {
		longest = o.Limit.Stretch(longest)
	}
	if first-longest > o.NotBefore && longest < horizon {
		o.NotBefore = first - longest
	}
	k.fit.until = min(until, placed.End()-job.Profile.Duration())
	defer func() { k.fit.until = horizon + 1 }()
	if k.fit.until <= o.NotBefore {
		return
	}
	apart := addTime(k.fit.until, longest) <= placed.Start // a better placement does not meet the present one
	if apart && !k.fit.fit(k.res, k.problem.Nodes, job.Profile, o) {
		return
	}
	k.remove(placed)
	if k.fit.fit(k.res, k.problem.Nodes, job.Profile, o) && k.fit.end(job.Profile) < placed.End() {
		k.plan[i] = k.fit.placement(job.Profile)
		k.freed = note(k.freed, Span{Start: placed.Start, End: placed.End()})
	}
	k.add(k.plan[i])
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
