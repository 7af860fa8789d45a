package strategy

import (
	"context"

	"github.com/evoslurm/evoslurm/planner"
)

// Fit places one job over what is in use (res) on a cluster of that many nodes: delayed to j.Submit
// or later, with its steps expanded within j.ExpandLimit (never 0 here). It returns false if the
// job is infeasible. It must not change res.
type Fit func(res *planner.Timeline, nodes int, j planner.Job) (planner.Placement, bool)

// FromFit makes a strategy from the fit of one job by Algorithm 1 (Klein & Pérez 2011, section
// 4.1): it places the jobs one by one in list order, each around the earlier ones. limit is the
// expand limit of jobs without their own.
func FromFit(name string, limit planner.ExpandLimit, fit Fit) planner.Strategy {
	return fromFit{name, limit, fit}
}

type fromFit struct {
	name  string
	limit planner.ExpandLimit
	fit   Fit
}

func (f fromFit) Name() string                     { return f.name }
func (f fromFit) ExpandLimit() planner.ExpandLimit { return f.limit }

// Moldable reports that a job gets the alternative that it prefers, each fitted separately.
func (f fromFit) Moldable() bool { return true }

// Plan implements planner.Strategy.
func (f fromFit) Plan(p planner.Problem) (planner.Schedule, error) {
	a, err := f.PlanRequest(context.Background(), Request{Problem: p})
	if err != nil {
		return nil, err
	}
	if err := a.FirstUnfit(p); err != nil {
		return nil, err
	}
	return a.Schedule, nil
}

// PlanRequest implements Planner.
func (f fromFit) PlanRequest(ctx context.Context, r Request) (Answer, error) {
	if err := r.Validate(); err != nil {
		return Answer{}, err
	}
	res := r.Timeline()
	a := Answer{Schedule: make(planner.Schedule, len(r.Jobs)), Unfit: map[int]string{}}
	for i, j := range r.Jobs {
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		j.ExpandLimit = limitOf(j, f.limit)
		placed, ok := f.best(res, r.Nodes, j)
		if !ok {
			a.Unfit[i] = infeasible
			continue
		}
		a.Schedule[i] = placed
		res.AddPlacement(placed)
	}
	return a, nil
}

// best returns the fit of the profile that the job prefers.
func (f fromFit) best(res *planner.Timeline, nodes int, j planner.Job) (best planner.Placement, ok bool) {
	if !j.IsMoldable() {
		return f.fit(res, nodes, j)
	}
	for k := range j.Choices() {
		placed, fits := f.fit(res, nodes, j.Settled(k))
		placed.Choice = k
		if fits && (!ok || j.Prefers(placed, best)) {
			best, ok = placed, true
		}
	}
	return best, ok
}
