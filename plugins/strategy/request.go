package strategy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// Request is a request for a plan.
type Request struct {
	planner.Problem
	Now int64 // second on the problem's clock; nothing starts earlier

	// Pinned holds jobs that run, or will certainly run, as placed here (a running job has run for
	// Now - Start seconds). Busy includes what they use.
	Pinned []planner.Placement

	// Sets groups the nodes by what tells one from another. It is there for a strategy that is a SetPlanner.
	Sets []planner.NodeSet
}

// Answer is a strategy's answer to a Request.
type Answer struct {
	Schedule planner.Schedule // one per job of the request; empty for an unfit job
	Unfit    map[int]string   // infeasible jobs, by index, with the reason
	By       string           // which strategy planned, for one that asks others in this process
}

// FirstUnfit returns the error for the first job of the problem that is infeasible, or nil if all fit.
func (a Answer) FirstUnfit(p planner.Problem) error {
	for i := range p.Jobs {
		if why, ok := a.Unfit[i]; ok {
			return &planner.FitError{Job: i, ID: p.Jobs[i].ID, Reason: why}
		}
	}
	return nil
}

// Planner is a strategy that wants more than the problem: the pinned jobs and its deadline (from
// ctx).
type Planner interface {
	planner.Strategy
	PlanRequest(ctx context.Context, r Request) (Answer, error)
}

// SetPlanner is a Planner that plans by Request.Sets if NodeSets returns true.
type SetPlanner interface {
	Planner
	NodeSets() bool
}

// plansBySets reports whether a strategy plans by Request.Sets.
func plansBySets(s planner.Strategy) bool {
	p, ok := s.(SetPlanner)
	return ok && p.NodeSets()
}

// Run plans a request in this process. Unfit holds the infeasible jobs, which do not affect the
// others.
func Run(ctx context.Context, s planner.Strategy, r Request) (Answer, error) {
	if len(r.Jobs) == 0 {
		return Answer{Schedule: planner.Schedule{}}, r.Validate()
	}
	if p, ok := s.(Planner); ok {
		return p.PlanRequest(ctx, r)
	}
	a := Answer{Schedule: make(planner.Schedule, len(r.Jobs))}
	problem := r.Problem
	problem.Jobs = slices.Clone(r.Jobs)
	index := make([]int, len(r.Jobs))
	for i := range index {
		index[i] = i
	}
	for len(index) > 0 {
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		schedule, err := s.Plan(problem)
		var unfit *planner.FitError
		if errors.As(err, &unfit) && unfit.Job >= 0 && unfit.Job < len(index) {
			drop := map[int]string{unfit.Job: unfit.Reason}
			if a.Unfit == nil { // infeasible jobs are often many: find first those that are infeasible by themselves
				a.Unfit = make(map[int]string)
				maps.Copy(drop, hopeless(s, problem))
			}
			kept := 0
			for i := range index {
				if why, gone := drop[i]; gone {
					a.Unfit[index[i]] = why
					continue
				}
				index[kept], problem.Jobs[kept] = index[i], problem.Jobs[i]
				kept++
			}
			index, problem.Jobs = index[:kept], problem.Jobs[:kept]
			continue
		}
		if err != nil {
			return Answer{}, err
		}
		if len(schedule) != len(index) {
			return Answer{}, fmt.Errorf("%d placements for %d jobs", len(schedule), len(index))
		}
		for i, j := range index {
			a.Schedule[j] = schedule[i]
		}
		break
	}
	return a, nil
}

// hopeless returns the jobs that would be infeasible as the only job.
func hopeless(s planner.Strategy, p planner.Problem) map[int]string {
	if planner.IsRigid(s) {
		p = p.Rigid()
	}
	res := p.Timeline()
	unfit := map[int]string{}
	for i, j := range p.Jobs {
		if _, ok := fits(res, p.Nodes, j, limitOf(j, planner.ExpandLimitOf(s))); !ok {
			unfit[i] = infeasible
		}
	}
	return unfit
}

// fits returns a placement for the job, with the first of its profiles that fits.
func fits(res *planner.Timeline, nodes int, j planner.Job, limit planner.ExpandLimit) (planner.Placement, bool) {
	for k := range j.Choices() {
		if placed, ok := planner.Fit(res, nodes, j.Choice(k), planner.FitOptions{NotBefore: j.Submit, Limit: limit}); ok {
			return placed, true
		}
	}
	return planner.Placement{}, false
}

const infeasible = "there is no time at which its nodes are free for long enough"

// limitOf returns the job's own limit, or otherwise the strategy's.
func limitOf(j planner.Job, strategy planner.ExpandLimit) planner.ExpandLimit {
	if j.ExpandLimit != 0 {
		return j.ExpandLimit
	}
	return strategy
}

// Describe returns the description of a strategy in this process; s is nil if it does not plan.
func Describe(d Definition, s planner.Strategy) Description {
	description := Description{Definition: d, Plans: s != nil, Resizes: d.NewPolicy != nil}
	description.New, description.NewPolicy = nil, nil
	if s != nil {
		description.ExpandLimit, description.Rigid, description.Moldable = ownLimit(s), planner.IsRigid(s), planner.KnowsAlternatives(s)
		description.NodeSets = plansBySets(s)
	}
	return description
}
