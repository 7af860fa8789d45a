package msg

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// Attempt is a change of a job to be planned on a copy of everything it depends on.
type Attempt interface {
	// Run plans the change. It changes only the copy.
	Run() Tried
}

// Try asks the shell to run an attempt at a change, and to pass back [Tried] as an input.
type Try struct {
	ID      uint64 // of the call
	Attempt Attempt
}

func (Try) effect() {}

// Tried brings back the result of an attempt.
type Tried struct {
	ID       uint64
	Refused  string // why the change is not possible; "" if it is
	Earliest int64  // Unix second at which the next step could begin; 0 if never, as things are
	Nodes    int    // nodes of the step to which the job grows
	Behind   bool   // the job goes behind all other waiting jobs
	Plan     []PlannedStep
	Later    []row.Postponed // waiting jobs that start later because of the growth
}

func (Tried) input() {}

// Run plans the change.
func (e Try) Run() Tried {
	out := e.Attempt.Run()
	out.ID = e.ID
	return out
}

// Try plans the problem with a strategy and returns figures about the result. The problem can be used again.
// The rows have the result for each evolving job, in the order of the queue.
func (p *Problem) Try(with Planner) (figures api.StrategyPlan, rows []api.TrialJob, err error) {
	again := *p
	again.Occupied, again.Batches = p.Occupied.Clone(), slices.Clone(p.Batches)
	for i := range again.Batches {
		b := &again.Batches[i]
		b.Last = nil // each strategy must plan for itself
		b.Places = slices.Clone(b.Places)
		for k := range b.Places {
			b.Places[k].Pool.Jobs = again.expanded(b.Jobs, b.Places[k].Pool.Jobs, max(p.Expand, planner.ExpandLimitOf(with)))
		}
	}
	var errs []error
	used, held := 0.0, 0.0
	for i, planned := range again.solve(with, &errs) {
		for k, one := range planned {
			j := p.Batches[i].Jobs[k]
			if j.ID == 0 {
				continue
			}
			profile := j.Profiles[one.Choice]
			r := api.TrialJob{ID: uint32(j.ID), Profile: profile.String(), TriedUnfit: one.Unfit}
			if one.Unfit == "" {
				placed := planner.Unpad(one.Placement, profile, p.Margin)
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
func (p *Problem) expanded(asked []ProblemJob, jobs []planner.PoolJob, limit planner.ExpandLimit) []planner.PoolJob {
	jobs = slices.Clone(jobs)
	for i, j := range asked {
		if j.ID != 0 && !j.Limited {
			jobs[i].ExpandLimit = limit
			for _, profile := range j.Profiles {
				jobs[i].ExpandLimit = min(jobs[i].ExpandLimit, PadLimit(profile, p.Margin, limit))
			}
		}
	}
	return jobs
}

// wall converts a second of the plan to Slurm's clock.
func (p *Problem) wall(at int64) time.Time { return time.Unix(at+p.Occupied.Origin, 0).Add(p.Skew) }

// JobNumber names a job in messages.
func JobNumber(id uint32) string {
	return "job " + strconv.FormatUint(uint64(id), 10)
}
