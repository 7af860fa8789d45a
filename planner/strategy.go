package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Job is a job to plan.
type Job struct {
	ID          string
	Submit      int64 // seconds; it never starts before
	Profile     Profile
	ExpandLimit ExpandLimit // 0: the strategy's
}

// Busy is nodes that are in use by others.
type Busy struct {
	Start    int64 // seconds
	Duration int64 // seconds; Forever: without end
	Nodes    int
}

// end is the second from which on the nodes are free; Forever: never.
func (b Busy) end() int64 {
	if b.Duration == Forever {
		return Forever
	}
	return addTime(b.Start, b.Duration)
}

// Problem is what a strategy plans: jobs, in list order, on a cluster.
type Problem struct {
	Nodes int
	Busy  []Busy
	Jobs  []Job
}

// Schedule is the placements of a problem's jobs, in the same order.
type Schedule []Placement

// Strategy is a planning algorithm.
type Strategy interface {
	// Name is what StrategyByName finds it by.
	Name() string
	// Plan places every job of a valid problem, or says which one cannot be
	// placed (*FitError). Equal problems get equal schedules.
	Plan(Problem) (Schedule, error)
}

// FitError says that a job fits nowhere.
type FitError struct {
	Job    int    // index into Problem.Jobs
	ID     string // of that job
	Reason string
}

func (e *FitError) Error() string { return fmt.Sprintf("job %q fits nowhere: %s", e.ID, e.Reason) }

// ProblemError says what is wrong with a problem.
type ProblemError struct {
	Job   int    // index into Problem.Jobs; -1: none
	ID    string // of that job
	Field string // as in the workload file, e.g. "profile", "busy[3].nodes"
	Err   error
}

func (e *ProblemError) Error() string {
	if e.Job < 0 {
		return fmt.Sprintf("%s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("job %d (%q): %s: %v", e.Job+1, e.ID, e.Field, e.Err)
}

func (e *ProblemError) Unwrap() error { return e.Err }

// Validate says what is wrong with the problem; the error is a *ProblemError.
// Jobs may share an ID here: strategies tell jobs apart by their index.
func (p Problem) Validate() error {
	fail := func(field, format string, args ...any) error {
		return &ProblemError{Job: -1, Field: field, Err: fmt.Errorf(format, args...)}
	}
	if p.Nodes < 1 || p.Nodes > MaxNodes {
		return fail("nodes", "%d is not within 1 … %d", p.Nodes, MaxNodes)
	}
	for i, b := range p.Busy {
		switch {
		case b.Nodes < 0 || b.Nodes > MaxNodes:
			return fail(fmt.Sprintf("busy[%d].nodes", i), "%d is not within 0 … %d", b.Nodes, MaxNodes)
		case b.Duration < 0:
			return fail(fmt.Sprintf("busy[%d].duration", i), "%d is negative", b.Duration)
		case b.Start < -horizon || b.Start > horizon:
			return fail(fmt.Sprintf("busy[%d].start", i), "%d is out of range", b.Start)
		}
	}
	for i, j := range p.Jobs {
		fail := func(field string, err error) error {
			return &ProblemError{Job: i, ID: j.ID, Field: field, Err: err}
		}
		if err := j.Profile.Validate(); err != nil {
			return fail("profile", err)
		}
		if peak := j.Profile.Peak(); peak > p.Nodes {
			return fail("profile", fmt.Errorf("needs %d nodes, the cluster has %d", peak, p.Nodes))
		}
		if j.Submit < -horizon || j.Submit > horizon {
			return fail("submit", fmt.Errorf("%d is out of range", j.Submit))
		}
		if j.ExpandLimit != 0 {
			if err := j.ExpandLimit.Validate(); err != nil {
				return fail("expand_limit", err)
			}
		}
	}
	return nil
}

// Timeline is the resource EP at the start: the sum of Busy.
func (p Problem) Timeline() *Timeline {
	t := new(Timeline)
	p.occupy(t)
	return t
}

// occupy puts Busy in use.
func (p Problem) occupy(t *Timeline) {
	for _, b := range p.Busy {
		t.Add(b.Start, b.end(), b.Nodes)
	}
}

// Rigid is the problem as a scheduler without evolution sees it: every job
// needs its peak for its whole duration and is never expanded (paper, section 5.1).
func (p Problem) Rigid() Problem {
	jobs := make([]Job, len(p.Jobs))
	for i, j := range p.Jobs {
		j.Profile = j.Profile.rigid()
		jobs[i] = j
	}
	p.Jobs = jobs
	return p
}

// list is Algorithm 1 (paper, section 4.1) with Algorithm 2 as the fit.
type list struct {
	name     string
	limit    ExpandLimit
	compact  bool
	minWaste bool // and then waste the least, FitMinWaste
	rigid    bool
	plain    bool // without the grid
}

// StrategyByName gives rigid, noX, 2X, 2X+c, infX, infX+c, or any other
// <limit>X or <limit>X+c, e.g. 1.5X+c (paper, section 5.1); minwaste or
// <limit>X+m (FitMinWaste); search or search+fair, also with +<limit>X (Search).
func StrategyByName(name string) (Strategy, error) {
	switch name {
	case "rigid":
		return list{name: name, limit: 1, rigid: true}, nil
	case "noX":
		return list{name: name, limit: 1}, nil
	}
	if s, ok, err := beyondPaper(name); err != nil {
		return nil, fmt.Errorf("strategy %s: %w", quoteShort(name), err)
	} else if ok {
		return s, nil
	}
	text, compact := strings.CutSuffix(name, "+c")
	text, ok := strings.CutSuffix(text, "X")
	if !ok {
		return nil, fmt.Errorf("unknown strategy %s", quoteShort(name))
	}
	limit, err := ParseExpandLimit(text)
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", quoteShort(name), err)
	}
	return list{name: name, limit: limit, compact: compact}, nil
}

// PaperStrategies are the names of the strategies that the paper compares, in
// the order of its tables.
func PaperStrategies() []string { return []string{"rigid", "noX", "2X", "2X+c", "infX", "infX+c"} }

func (l list) Name() string { return l.name }

// ExpandLimitOf is the expand limit of a strategy for jobs that have none of
// their own; Infinite for a strategy that does not tell.
func ExpandLimitOf(s Strategy) ExpandLimit {
	if l, ok := s.(interface{ ExpandLimit() ExpandLimit }); ok {
		return l.ExpandLimit()
	}
	return Infinite
}

// ExpandLimit is that of jobs that have none of their own.
func (l list) ExpandLimit() ExpandLimit { return l.limit }

// IsRigid tells whether a strategy plans jobs without their evolution: its
// schedules are those of Problem.Rigid, one step each.
func IsRigid(s Strategy) bool {
	l, ok := s.(interface{ Rigid() bool })
	return ok && l.Rigid()
}

// Rigid tells that this is the baseline without evolution.
func (l list) Rigid() bool { return l.rigid }

// Plan places the jobs one by one in list order, each as early as it completes.
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
		seconds += p.Jobs[i].Profile.Duration()
	}
	memory := memories.Get().(*planMemory)
	defer memories.Put(memory)
	f := &memory.fitter
	f.grid, f.until, f.minWaste = nil, horizon+1, l.minWaste
	var res occupancy
	var add func(Placement)
	if steps <= stripSteps && !l.plain {
		memory.strip.reset(p.Busy, 2*steps)
		res, add = &memory.strip, memory.strip.add
	} else {
		tree := &memory.tree
		tree.Reset()
		p.occupy(tree)
		res, add = tree, tree.AddPlacement
		if !l.plain {
			f.grid = &memory.grid
			if f.grid.found == nil {
				f.grid.found = make([]candidates, gridClasses)
				f.grid.coarse = make([]candidates, gridClasses)
			}
			p.grid(f.grid, tree, seconds/int64(steps)/gridCellsPerStep)
			defer func() { f.grid = nil }()
			add = func(placed Placement) {
				tree.AddPlacement(placed)
				f.grid.update(placed.Start, placed.End())
			}
		}
	}
	schedule := make(Schedule, len(p.Jobs))
	expanded := make(Profile, steps) // of all jobs
	for i := range p.Jobs {
		j := &p.Jobs[i]
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

// planMemory is what planning needs beside its result; it is used again.
type planMemory struct {
	fitter fitter
	strip  strip
	tree   Timeline
	grid   grid
}

var memories = sync.Pool{New: func() any { return new(planMemory) }}

// nowhere is the reason of a FitError.
const nowhere = "there is no time at which its nodes are free for long enough"

// options are those for fitting a job.
func (l list) options(j Job) FitOptions {
	o := FitOptions{NotBefore: j.Submit, Limit: l.limit, Compact: l.compact}
	if j.ExpandLimit != 0 && !l.rigid {
		o.Limit = j.ExpandLimit
	}
	return o
}

// grid makes a grid one for the problem's jobs over a timeline with its busy nodes.
func (p Problem) grid(g *grid, res *Timeline, width int64) {
	origin := horizon
	for _, j := range p.Jobs {
		origin = min(origin, j.Submit)
	}
	var nodes []int
	for i := 0; i < len(p.Jobs); i += len(p.Jobs)/gridSample + 1 {
		for _, s := range p.Jobs[i].Profile {
			nodes = append(nodes, s.Nodes)
		}
	}
	g.reset(res, p.Nodes, origin, width, nodes)
	for _, b := range p.Busy {
		g.update(b.Start, b.end())
	}
}

// A plan of at most stripSteps steps does without tree and grid. With a grid, an
// average step has gridCellsPerStep cells.
const (
	stripSteps       = 400
	gridCellsPerStep = 8
	gridSample       = 200 // jobs
)

// VerifyError says which condition of the paper a schedule breaks.
type VerifyError struct {
	Condition string // "C1" or "C2" (paper, section 3.3)
	Job       int    // index; -1: none
	Reason    string
}

func (e *VerifyError) Error() string {
	if e.Job < 0 {
		return fmt.Sprintf("%s broken: %s", e.Condition, e.Reason)
	}
	return fmt.Sprintf("%s broken by job %d: %s", e.Condition, e.Job+1, e.Reason)
}

// Verify checks a schedule: every placement is the job's profile, delayed to its
// submission or later and expanded within its limit (C1; limit is that of jobs
// without their own), the last step never; and at no time are more nodes in use
// than there are (C2). For rigid, verify against Problem.Rigid.
func Verify(p Problem, s Schedule, limit ExpandLimit) error {
	if len(s) != len(p.Jobs) {
		return &VerifyError{"C1", -1, fmt.Sprintf("%d placements for %d jobs", len(s), len(p.Jobs))}
	}
	for i, j := range p.Jobs {
		if err := verifyPlacement(j, s[i], limit); err != nil {
			return &VerifyError{"C1", i, err.Error()}
		}
	}
	var changes []usage
	for _, b := range p.Busy {
		changes = append(changes, usage{b.Start, int64(b.Nodes), int64(b.Nodes)}, usage{b.end(), -int64(b.Nodes), -int64(b.Nodes)})
	}
	for _, placed := range s {
		at, before := placed.Start, int64(0)
		for _, step := range placed.Steps {
			changes = append(changes, usage{at, int64(step.Nodes) - before, 0})
			at, before = at+step.Duration, int64(step.Nodes)
		}
		changes = append(changes, usage{at, -before, 0})
	}
	slices.SortFunc(changes, func(a, b usage) int { return cmp.Compare(a.at, b.at) })
	var now usage
	for i, c := range changes {
		now.at, now.used, now.busy = c.at, now.used+c.used, now.busy+c.busy
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		// Where Busy alone is too much no schedule can help.
		if now.used > max(int64(p.Nodes), now.busy) {
			return &VerifyError{"C2", -1, fmt.Sprintf("%d nodes in use from second %d on, there are %d", now.used, now.at, p.Nodes)}
		}
	}
	return nil
}

// usage is how many nodes more are in use from a second on, and how many of them by Busy.
type usage struct{ at, used, busy int64 }

func verifyPlacement(j Job, got Placement, limit ExpandLimit) error {
	if j.ExpandLimit != 0 {
		limit = j.ExpandLimit
	}
	if got.Start < j.Submit {
		return fmt.Errorf("starts at second %d, submitted at %d", got.Start, j.Submit)
	}
	if len(got.Steps) != len(j.Profile) {
		return fmt.Errorf("%d steps instead of %d", len(got.Steps), len(j.Profile))
	}
	if got.End() > math.MaxInt64-1 {
		return errors.New("never ends")
	}
	for k, want := range j.Profile {
		step := got.Steps[k]
		longest := limit.Stretch(want.Duration)
		if k == len(j.Profile)-1 {
			longest = want.Duration
		}
		switch {
		case step.Nodes != want.Nodes:
			return fmt.Errorf("step %d has %d nodes instead of %d", k+1, step.Nodes, want.Nodes)
		case step.Duration < want.Duration:
			return fmt.Errorf("step %d lasts %d s instead of %d s", k+1, step.Duration, want.Duration)
		case step.Duration > longest:
			return fmt.Errorf("step %d lasts %d s, at most %d s are allowed", k+1, step.Duration, longest)
		}
	}
	return nil
}
