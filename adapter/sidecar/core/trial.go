package core

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/planner"
)

// Problem returns the current queue as a problem for any strategy, or nil before the first poll of Slurm. A
// job of several partitions is in the partition of its current plan, or in the first one.
func (c *Core) Problem() *Problem {
	if c.snapshot == nil {
		return nil
	}
	p := c.problem(c.snapshot)
	for i := range p.batches {
		b := &p.batches[i]
		at := max(b.present, 0)
		b.places = b.places[at : at+1]
	}
	return p
}

// Try plans the problem with a strategy and returns figures about the result. The problem can be used again.
// The rows have the result for each evolving job, in the order of the queue.
func (p *Problem) Try(with Planner) (figures api.StrategyPlan, rows []api.TrialJob, err error) {
	again := *p
	again.occupied, again.batches = p.occupied.clone(), slices.Clone(p.batches)
	for i := range again.batches {
		b := &again.batches[i]
		b.last = nil // each strategy must plan for itself
		b.places = slices.Clone(b.places)
		for k := range b.places {
			b.places[k].pool.Jobs = again.expanded(b.jobs, b.places[k].pool.Jobs, max(p.expand, planner.ExpandLimitOf(with)))
		}
	}
	var errs []error
	used, held := 0.0, 0.0
	for i, planned := range again.solve(with, &errs) {
		for k, one := range planned {
			j := p.batches[i].jobs[k]
			if j.id == 0 {
				continue
			}
			profile := j.profiles[one.Choice]
			r := api.TrialJob{ID: uint32(j.id), Profile: profile.String(), TriedUnfit: one.Unfit}
			if one.Unfit == "" {
				placed := planner.Unpad(one.Placement, profile, p.margin)
				figures.Planned++
				figures.Makespan = max(figures.Makespan, float64(placed.End()))
				figures.Completion += float64(placed.End())
				figures.Wait += float64(placed.Start)
				used += float64(profile.Area())
				held += float64(placed.Steps.Area())
				r.TriedStart, r.TriedEnd = p.wall(placed.Start), p.wall(placed.End())
			}
			rows = append(rows, r)
		}
	}
	if figures.Planned > 0 {
		figures.Completion /= float64(figures.Planned)
		figures.Wait /= float64(figures.Planned)
		figures.Waste = 100 * (held - used) / used
	}
	return figures, slices.Clip(rows), errors.Join(errs...)
}

// expanded returns the jobs of a pool, and sets the expand limit of jobs without their own.
func (p *Problem) expanded(asked []problemJob, jobs []planner.PoolJob, limit planner.ExpandLimit) []planner.PoolJob {
	jobs = slices.Clone(jobs)
	for i, j := range asked {
		if j.id != 0 && !j.limited {
			jobs[i].ExpandLimit = limit
			for _, profile := range j.profiles {
				jobs[i].ExpandLimit = min(jobs[i].ExpandLimit, padLimit(profile, p.margin, limit))
			}
		}
	}
	return jobs
}

// wall converts a second of the plan to the machine's clock.
func (p *Problem) wall(at int64) time.Time { return time.Unix(at+p.occupied.origin, 0).Add(p.skew) }
