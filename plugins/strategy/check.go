package strategy

import (
	"fmt"
	"math"

	"github.com/evoslurm/evoslurm/planner"
)

// Check reports whether an answer is valid. Every job is answered and placed within its limits (C1;
// limit is for jobs without their own). At no time are more nodes in use than there are (C2). No
// feasible job is called infeasible, and none is delayed longer than if all ran one after the
// other. With rigid, each job is placed at its peak for its whole duration. Check takes about as
// long as planner.Verify.
func Check(r Request, rigid bool, limit planner.ExpandLimit, a Answer) error {
	if len(a.Schedule) != len(r.Jobs) {
		return fmt.Errorf("%d jobs answered of %d", len(a.Schedule), len(r.Jobs))
	}
	p := r.Problem
	if rigid {
		p, limit = p.Rigid(), 1
	}
	placed := p
	schedule := a.Schedule
	if len(a.Unfit) > 0 {
		placed.Jobs, schedule = nil, nil
		for i, j := range p.Jobs {
			if _, unfit := a.Unfit[i]; unfit {
				continue
			}
			placed.Jobs = append(placed.Jobs, j)
			schedule = append(schedule, a.Schedule[i])
		}
	}
	for i, s := range schedule { // before anything is summed up
		if s.Start > maxTime || s.Start < -maxTime {
			return fmt.Errorf("placement %d starts at second %d", i+1, s.Start)
		}
		for _, step := range s.Steps {
			if step.Duration > maxTime {
				return fmt.Errorf("placement %d has a step of %d s", i+1, step.Duration)
			}
		}
	}
	if err := planner.Verify(placed, schedule, limit); err != nil {
		return err
	}
	if bound := latest(placed); bound < maxTime {
		for i, s := range schedule {
			if s.Start > bound {
				return fmt.Errorf("placement %d starts at second %d, though one after the other all jobs would have ended by %d", i+1, s.Start, bound)
			}
		}
	}
	if len(a.Unfit) == 0 {
		return nil
	}
	res := placed.Timeline()
	for _, s := range schedule {
		res.AddPlacement(s)
	}
	for i := range a.Unfit {
		if i < 0 || i >= len(p.Jobs) {
			return fmt.Errorf("job %d of %d is said to be infeasible", i+1, len(p.Jobs))
		}
		j := p.Jobs[i]
		if at, ok := fits(res, p.Nodes, j, limitOf(j, limit)); ok {
			return fmt.Errorf("job %d is said to be infeasible, but it fits at second %d", i+1, at.Start)
		}
	}
	return nil
}

// maxTime bounds times and durations that are summed up: 2^52 seconds.
const maxTime = int64(1) << 52

// latest returns a second by which all jobs have ended if they run one after the other, once all
// else is over.
func latest(p planner.Problem) int64 {
	end := int64(math.MinInt64)
	for _, b := range p.Busy {
		switch {
		case b.Nodes == 0 || b.Duration == 0:
		case b.Duration > maxTime:
			end = max(end, b.Start)
		default:
			end = max(end, b.Start+b.Duration)
		}
	}
	total := int64(0)
	for _, j := range p.Jobs {
		end = max(end, j.Submit)
		longest := int64(0)
		for k := range j.Choices() {
			longest = max(longest, j.Choice(k).Duration())
		}
		if total += longest; total > maxTime {
			return maxTime
		}
	}
	if end > maxTime {
		return maxTime
	}
	return end + total
}
