package planner

import (
	"fmt"
	"slices"
)

// Live is a plan that is kept while time passes and jobs come and end. It changes
// what has to change and leaves the rest: nothing is built anew. It is not safe for
// concurrent use.
type Live struct {
	problem Problem // rigid for a strategy without evolution
	list    list
	res     *Timeline
	fit     *fitter
	plan    Schedule
	ended   []bool
	now     int64
	freed   []Span // stretches with fewer nodes in use than when jobs were last tried
	later   []Span // those of them that are new since Improve began
}

// NewLive plans a problem with one of the paper's strategies.
func NewLive(p Problem, s Strategy) (*Live, error) {
	l, ok := s.(list)
	if !ok {
		return nil, fmt.Errorf("strategy %s plans whole lists only", s.Name())
	}
	plan, err := l.Plan(p)
	if err != nil {
		return nil, err
	}
	if l.rigid {
		p = p.Rigid()
	}
	p.Jobs = slices.Clone(p.Jobs)
	live := liveOver(p, l)
	live.plan, live.ended = plan, make([]bool, len(plan))
	for _, placed := range plan {
		live.add(placed)
	}
	return live, nil
}

// liveOver is a plan of the problem's jobs without any placement yet.
func liveOver(p Problem, l list) *Live {
	live := &Live{problem: p, list: l, res: p.Timeline(), fit: &fitter{until: horizon + 1, minWaste: l.minWaste}, now: dawn}
	steps, seconds := int64(1), int64(gridCellsPerStep)
	for _, j := range p.Jobs {
		steps += int64(len(j.Profile))
		seconds = addTime(seconds, j.Profile.Duration())
	}
	live.fit.grid = new(grid)
	p.grid(live.fit.grid, live.res, seconds/steps/gridCellsPerStep)
	return live
}

// Schedule is the present plan, by index of job. It must not be changed.
func (l *Live) Schedule() Schedule { return l.plan }

func (l *Live) add(p Placement) {
	l.res.AddPlacement(p)
	l.fit.grid.update(p.Start, p.End())
}

func (l *Live) remove(p Placement) {
	l.res.RemovePlacement(p)
	l.fit.grid.update(p.Start, p.End())
}

// Advance lets time pass until second now: no job is planned to start before, and
// what was in use before is forgotten. It takes amortised O(log n).
func (l *Live) Advance(now int64) {
	if now > l.now {
		l.now = now
		l.res.DropBefore(now)
	}
}

// Append puts a job at the end of the list and places it. The error is a
// *ProblemError or a *FitError, and the job is not in the list then.
func (l *Live) Append(j Job) (int, error) {
	i := len(l.problem.Jobs)
	one := Problem{Nodes: l.problem.Nodes, Jobs: []Job{j}}
	if err := one.Validate(); err != nil {
		return 0, err
	}
	if l.list.rigid {
		j = one.Rigid().Jobs[0]
	}
	o := l.list.options(j)
	o.NotBefore = max(o.NotBefore, l.now)
	if !l.fit.fit(l.res, l.problem.Nodes, j.Profile, o) {
		return 0, &FitError{Job: i, ID: j.ID, Reason: nowhere}
	}
	placed := l.fit.placement(j.Profile)
	l.problem.Jobs = append(l.problem.Jobs, j)
	l.plan = append(l.plan, placed)
	l.ended = append(l.ended, false)
	l.add(placed)
	return i, nil
}

// End says that a job ends at second at, or now if that is later: the nodes that
// it was to hold afterwards are free. A job that has not started by then is gone
// from the plan; its placement is without steps. Improve makes use of the nodes.
func (l *Live) End(job int, at int64) {
	placed := l.plan[job]
	at = max(at, l.now)
	if l.ended[job] || at >= placed.End() {
		return
	}
	l.ended[job] = true
	kept := Placement{Start: placed.Start}
	begin := placed.Start
	for _, s := range placed.Steps {
		end := begin + s.Duration
		if at < end {
			l.res.Remove(max(begin, at), end, s.Nodes)
		}
		if begin < at {
			s.Duration = min(end, at) - begin
			kept.Steps = append(kept.Steps, s)
		}
		begin = end
	}
	l.plan[job] = kept
	l.release(Span{Start: max(at, placed.Start), End: placed.End()})
}

// Replan takes the jobs from index first of the list on out of the plan, unless they
// have started, and places them anew in list order: unlike Improve it lets jobs
// complete later too. With first = 0 the plan is the strategy's for what runs and what
// is left. It gives the indices of the jobs that moved.
func (l *Live) Replan(first int) (moved []int) {
	waits := func(i int) bool { return !l.ended[i] && l.plan[i].Start > l.now }
	for i := first; i < len(l.plan); i++ {
		if waits(i) {
			l.remove(l.plan[i])
		}
	}
	for i := first; i < len(l.plan); i++ {
		if !waits(i) {
			continue
		}
		job, was := l.problem.Jobs[i], l.plan[i]
		o := l.list.options(job)
		o.NotBefore = max(o.NotBefore, l.now)
		// It fits behind all others, as it did before.
		if l.fit.fit(l.res, l.problem.Nodes, job.Profile, o) {
			l.plan[i] = l.fit.placement(job.Profile)
		}
		l.add(l.plan[i])
		if !slices.Equal(was.Steps, l.plan[i].Steps) || was.Start != l.plan[i].Start {
			moved = append(moved, i)
		}
	}
	if first == 0 {
		l.freed = l.freed[:0]
	}
	return moved
}

// release notes a stretch with fewer nodes in use.
func (l *Live) release(s Span) {
	l.fit.grid.update(s.Start, s.End)
	l.freed = note(l.freed, s)
	l.later = note(l.later, s)
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

// Improve goes through the jobs that have not started, in list order, and places
// anew those that complete earlier with the nodes freed since the last time; no job
// completes later. It gives the indices of the jobs that moved.
//
// A better placement must use something that was freed, so a job is tried only
// near there: where nothing moves, about a microsecond a job.
//
// It goes through the list once. Jobs that move free nodes for those before them
// in the list too: the next Improve tries that.
func (l *Live) Improve() (moved []int) {
	l.later = l.later[:0]
	for i := range l.plan {
		if len(l.freed) == 0 {
			break
		}
		if !l.ended[i] && l.plan[i].Start > l.now && l.improve(i) {
			moved = append(moved, i)
		}
	}
	l.freed, l.later = l.later, l.freed
	return moved
}

func (l *Live) improve(i int) bool {
	job, placed := l.problem.Jobs[i], l.plan[i]
	o := l.list.options(job)
	o.NotBefore = max(o.NotBefore, l.now)
	first, until := Forever, dawn
	for _, s := range l.freed {
		if s.Start < placed.End() {
			first, until = min(first, s.Start), max(until, s.End)
		}
	}
	if first == Forever {
		return false
	}
	// It must reach a freed stretch, and start before the last of them ends.
	longest := job.Profile.Duration()
	if l.list.limit > 1 || o.Limit > 1 {
		longest = o.Limit.Stretch(longest)
	}
	if first-longest > o.NotBefore && longest < horizon {
		o.NotBefore = first - longest
	}
	l.fit.until = min(until, placed.End()-job.Profile.Duration())
	defer func() { l.fit.until = horizon + 1 }()
	if l.fit.until <= o.NotBefore {
		return false
	}
	apart := addTime(l.fit.until, longest) <= placed.Start // a better placement does not meet the present one
	if apart && !l.fit.fit(l.res, l.problem.Nodes, job.Profile, o) {
		return false
	}
	l.remove(placed)
	better := l.fit.fit(l.res, l.problem.Nodes, job.Profile, o) && l.fit.end(job.Profile) < placed.End()
	if better {
		l.plan[i] = l.fit.placement(job.Profile)
		l.release(Span{Start: placed.Start, End: placed.End()})
	}
	l.add(l.plan[i])
	return better
}
