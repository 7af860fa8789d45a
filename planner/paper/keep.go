package paper

import (
	"github.com/evoslurm/evoslurm/planner/grid"
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// Keep adapts a plan that was made when fewer nodes were in use. In list order, every job keeps its
// placement if the earlier jobs leave room for it, and is otherwise fitted again (Algorithm 2). So
// no job gives way to a later one. Then jobs that complete earlier on the freed nodes move, once
// through the list. limit is the expand limit of jobs without their own.
//
// If all placements can be kept, the plan stays the same. The error is a *FitError. It takes about
// as long as planning the jobs that lose their placements, and O(log n) for each of the n others.
func Keep(p Problem, plan Schedule, limit profile.ExpandLimit) (Schedule, error) {
	k := newKeeper(p, limit)
	for i, j := range p.Jobs {
		placed := plan[i]
		if !hasRoom(k.res, p.Nodes, placed) {
			again, ok := k.fit.best(k.res, p.Nodes, j, k.list.options(j))
			if !ok {
				return nil, &FitError{Job: i, ID: j.ID, Reason: nowhere}
			}
			k.freed = note(k.freed, timeline.Span{Start: placed.Start, End: placed.End()})
			placed = again
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
	res     *timeline.Timeline
	fit     *fitter
	plan    Schedule
	freed   []timeline.Span // stretches with fewer nodes in use than in the kept plan
}

func newKeeper(p Problem, limit profile.ExpandLimit) *keeper {
	k := &keeper{problem: p, list: list{name: "kept", limit: limit}, res: p.Timeline(), fit: &fitter{until: exact.Horizon + 1},
		plan: make(Schedule, len(p.Jobs))}
	steps, seconds := int64(1), int64(gridCellsPerStep)
	for _, j := range p.Jobs {
		steps += int64(len(j.Profile))
		seconds = exact.AddTime(seconds, j.Profile.Duration())
	}
	k.fit.grid = new(grid.Grid)
	p.grid(k.fit.grid, k.res, seconds/steps/gridCellsPerStep)
	return k
}

func (k *keeper) add(p profile.Placement) {
	k.res.AddPlacement(p)
	k.fit.grid.Update(p.Start, p.End())
}

func (k *keeper) remove(p profile.Placement) {
	k.res.RemovePlacement(p)
	k.fit.grid.Update(p.Start, p.End())
}

// note appends a span. Beyond some number, it joins the last two, which is less exact but harmless.
func note(spans []timeline.Span, s timeline.Span) []timeline.Span {
	if k := len(spans) - 1; k >= 32 {
		spans[k].Start, spans[k].End = min(spans[k].Start, s.Start), max(spans[k].End, s.End)
		return spans
	}
	return append(spans, s)
}

// improve moves a job if it completes earlier on the freed nodes. A better placement must use some
// of them, so it searches only near them: where nothing moves, this takes about a microsecond per
// job.
func (k *keeper) improve(i int) {
	placed := k.plan[i]
	job := k.problem.Jobs[i].Settled(placed.Choice)
	o := k.list.options(job)
	first, until := exact.Forever, exact.Dawn
	for _, s := range k.freed {
		if s.Start < placed.End() {
			first, until = min(first, s.Start), max(until, s.End)
		}
	}
	if first == exact.Forever {
		return
	}
	// It must reach a freed stretch and start before the last of them ends.
	longest := job.Profile.Duration()
	if k.list.limit > 1 || o.Limit > 1 {
		longest = o.Limit.Stretch(longest)
	}
	if first-longest > o.NotBefore && longest < exact.Horizon {
		o.NotBefore = first - longest
	}
	k.fit.until = min(until, placed.End()-job.Profile.Duration())
	defer func() { k.fit.until = exact.Horizon + 1 }()
	if k.fit.until <= o.NotBefore {
		return
	}
	apart := exact.AddTime(k.fit.until, longest) <= placed.Start // a better placement cannot meet the present one
	if apart && !k.fit.fit(k.res, k.problem.Nodes, job.Profile, o) {
		return
	}
	k.remove(placed)
	if k.fit.fit(k.res, k.problem.Nodes, job.Profile, o) && k.fit.end(job.Profile) < placed.End() {
		k.plan[i] = k.fit.placement(job.Profile)
		k.plan[i].Choice = placed.Choice
		k.freed = note(k.freed, timeline.Span{Start: placed.Start, End: placed.End()})
	}
	k.add(k.plan[i])
}

// hasRoom reports whether a placement's nodes are free.
func hasRoom(res *timeline.Timeline, capacity int, placed profile.Placement) bool {
	at := placed.Start
	for _, s := range placed.Steps {
		if res.Max(at, at+s.Duration)+s.Nodes > capacity {
			return false
		}
		at += s.Duration
	}
	return true
}
