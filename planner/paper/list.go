package paper

import (
	"fmt"
	"strings"
	"sync"

	"github.com/evoslurm/evoslurm/planner/grid"
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// list is Algorithm 1 (paper, section 4.1) with Algorithm 2 as the fit.
type list struct {
	name     string
	limit    profile.ExpandLimit
	compact  bool
	minWaste bool // and then waste the least, see FitMinWaste
	rigid    bool
	plain    bool // without the grid
}

// ByName returns rigid, noX, 2X, 2X+c, infX, infX+c, or any other <limit>X or <limit>X+c, e.g.
// 1.5X+c (paper, section 5.1), and minwaste or <limit>X+m (FitMinWaste).
func ByName(name string) (Strategy, error) {
	switch name {
	case "rigid":
		return list{name: name, limit: 1, rigid: true}, nil
	case "noX":
		return list{name: name, limit: 1}, nil
	case "minwaste":
		return list{name: name, limit: profile.Infinite, compact: true, minWaste: true}, nil
	}
	l := list{name: name}
	text, minWaste := strings.CutSuffix(name, "X+m")
	if !minWaste {
		text, l.compact = strings.CutSuffix(name, "+c")
		var ok bool
		if text, ok = strings.CutSuffix(text, "X"); !ok {
			return nil, fmt.Errorf("unknown strategy %.100q", name)
		}
	}
	l.compact, l.minWaste = l.compact || minWaste, minWaste
	var err error
	if l.limit, err = profile.ParseExpandLimit(text); err != nil {
		return nil, fmt.Errorf("strategy %.100q: %w", name, err)
	}
	return l, nil
}

// PaperStrategies returns the names of the strategies that the paper compares, in
// the order of its tables.
func PaperStrategies() []string { return []string{"rigid", "noX", "2X", "2X+c", "infX", "infX+c"} }

func (l list) Name() string { return l.name }

// ExpandLimitOf returns a strategy's expand limit for jobs without their own, or Infinite for a
// strategy without a method ExpandLimit.
func ExpandLimitOf(s Strategy) profile.ExpandLimit {
	if l, ok := s.(interface{ ExpandLimit() profile.ExpandLimit }); ok {
		return l.ExpandLimit()
	}
	return profile.Infinite
}

// ExpandLimit returns the limit of jobs without their own.
func (l list) ExpandLimit() profile.ExpandLimit { return l.limit }

// IsRigid reports whether a strategy plans jobs without their evolution: its schedules are those
// for Problem.Rigid, with one step each.
func IsRigid(s Strategy) bool {
	l, ok := s.(interface{ Rigid() bool })
	return ok && l.Rigid()
}

// Steady reports whether a plan stays valid while only time passes.
func (l list) Steady() bool { return !l.rigid }

// Rigid reports whether this is the baseline without evolution.
func (l list) Rigid() bool { return l.rigid }

// Plan places the jobs one by one in list order, so that each completes as early as possible. A
// moldable job gets the alternative that it prefers.
func (l list) Plan(p Problem) (Schedule, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if l.rigid {
		p = p.Rigid()
	}
	steps, seconds := 0, int64(0)
	for i := range p.Jobs {
		steps += len(p.Jobs[i].Profile)
		for _, a := range p.Jobs[i].Alternatives { // only one is placed: room for any
			steps += len(a)
		}
		seconds += p.Jobs[i].Profile.Duration()
	}
	memory := memories.Get().(*planMemory)
	defer memories.Put(memory)
	f := &memory.fitter
	f.grid, f.until, f.minWaste = nil, exact.Horizon+1, l.minWaste
	var res occupancy
	var add func(profile.Placement)
	if steps <= stripSteps && !l.plain {
		var busy []timeline.Span
		if len(p.Busy) > 0 {
			busy = p.Timeline().Steps()
		}
		memory.strip.Reset(busy, 2*steps)
		res, add = &memory.strip, memory.strip.Add
	} else {
		tree := &memory.tree
		tree.Reset()
		p.occupy(tree)
		res, add = tree, tree.AddPlacement
		if !l.plain {
			f.grid = &memory.grid
			f.grid.KeepCandidates()
			p.grid(f.grid, tree, seconds/int64(steps)/gridCellsPerStep)
			defer func() { f.grid = nil }()
			add = func(placed profile.Placement) {
				tree.AddPlacement(placed)
				f.grid.Update(placed.Start, placed.End())
			}
		}
	}
	schedule := make(Schedule, len(p.Jobs))
	expanded := make(profile.Profile, steps) // steps of all jobs
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if j.IsMoldable() {
			placed, ok := f.best(res, p.Nodes, *j, l.options(*j))
			if !ok {
				return nil, &FitError{Job: i, ID: j.ID, Reason: nowhere}
			}
			schedule[i] = placed
			add(placed)
			continue
		}
		if !f.fit(res, p.Nodes, j.Profile, l.options(*j)) {
			return nil, &FitError{Job: i, ID: j.ID, Reason: nowhere}
		}
		n := len(j.Profile)
		schedule[i] = f.placementIn(j.Profile, expanded[:n:n])
		expanded = expanded[n:]
		add(schedule[i])
	}
	return schedule, nil
}

// planMemory holds what planning needs besides its result, for reuse.
type planMemory struct {
	fitter fitter
	strip  timeline.Strip
	tree   timeline.Timeline
	grid   grid.Grid
}

var memories = sync.Pool{New: func() any { return new(planMemory) }}

// nowhere is the reason of a FitError.
const nowhere = "there is no time at which its nodes are free for long enough"

// options returns the options for fitting a job.
func (l list) options(j Job) FitOptions {
	o := FitOptions{NotBefore: j.Submit, Limit: l.limit, Compact: l.compact}
	if j.ExpandLimit != 0 && !l.rigid {
		o.Limit = j.ExpandLimit
	}
	return o
}

// grid resets a grid for the problem's jobs over a timeline with its busy nodes.
func (p Problem) grid(g *grid.Grid, res *timeline.Timeline, width int64) {
	origin := exact.Horizon
	for _, j := range p.Jobs {
		origin = min(origin, j.Submit)
	}
	var nodes []int
	for i := 0; i < len(p.Jobs); i += len(p.Jobs)/gridSample + 1 {
		for _, s := range p.Jobs[i].Profile {
			nodes = append(nodes, s.Nodes)
		}
		for _, a := range p.Jobs[i].Alternatives {
			nodes = append(nodes, min(a.Peak(), p.Nodes))
		}
	}
	g.Reset(res, p.Nodes, origin, width, nodes)
	for _, b := range p.Busy {
		g.Update(b.Start, b.end())
	}
}

// A plan of at most stripSteps steps needs neither tree nor grid. With a grid, an average step has
// gridCellsPerStep cells.
const (
	stripSteps       = 400
	gridCellsPerStep = 8
	gridSample       = 200 // jobs
)
