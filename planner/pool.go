package planner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// Pool is a set of equal nodes, with others' use of them and the evolving jobs that run or wait on
// them.
type Pool struct {
	Nodes    int
	Busy     []NodeBusy // without the nodes that Jobs hold
	Reserved []NodeBusy // reserved by others: busy then, and closed before to jobs whose limit reaches into it
	Jobs     []PoolJob  // in list order
	Switches *Switches  // nil: nodes are chosen by their numbers
	Licenses []License  // those that Jobs may need
}

// PoolJob is an evolving job in a pool.
type PoolJob struct {
	Job                 // Profile is what is still to come, starting with the rest of the running step
	Held        []int   // nodes that it holds
	Driver      int     // node that is never freed before the end; -1 if none; or Lowest
	Prefer      []int   // preferred among otherwise equal nodes
	Release     []int   // freed first at the first shrink
	Was         [][]int // sorted nodes of all its steps in the last plan, to keep a choice by Switches stable
	MaxDuration []int64 // as in FitOptions, for a Fixed job
	Others      bool    // another party starts it, perhaps later than planned, see PlanAgain
	Fixed       bool    // it runs: it starts exactly at Submit, as a continuation, with Held

	// Limits holds time limits in seconds: one from the job's start, or one per step from that
	// step's start. Without limits, the job ends with its plan. The job may use a node that others
	// have reserved only if the limit ends before the reservation starts, or the use begins after
	// it ends.
	Limits []int64

	// Leaves is on how many leaf switches it starts at most; 0 for any number. It waits for that for Patience seconds from
	// when it could start on more, and then starts on the fewest.
	Leaves   int
	Patience int64

	Licenses []LicenseNeed // what must be free when it starts, unless it is Fixed

	// Bring is the least number of seconds for which a node that comes at a later step is
	// requested, even beyond the limit. So no node is brought shortly before others have it.
	Bring int64

	// AlternativeLimits holds a moldable job's limits with each of its profiles, Profile's first;
	// nil if Limits holds for all.
	AlternativeLimits [][]int64
}

// Planned is the plan of one job of a pool.
type Planned struct {
	Placement
	Nodes [][]int // sorted node IDs of every step
	Unfit string  // why the job has no plan, in words; "" if it has one
	Waits int64   // how many seconds later it starts than it could on more leaf switches

	// Options holds what the alternatives of a moldable job would give, with the earlier jobs in
	// the list as they are planned; it ignores which single nodes are free.
	Options []Option
}

// mapRounds bounds how often Pool.Plan plans again because of node windows.
const mapRounds = 64

// Plan plans a pool: first the running jobs, each as it can continue, then all others by one call
// of the strategy, then node IDs. If nodes cannot be found although their number suffices, it gives
// up the time before the obstructing busy interval on that node. Then it plans everything again, by
// Keep if the strategy's method AsksOnce returns true. If that takes too many rounds, every node
// counts as busy until it is free for good.
//
// A job that cannot be placed has Unfit set and does not affect the others. If it runs, it keeps
// its held nodes for its whole profile. The error is for a malformed pool or a failing strategy.
// With Reserved nodes, the strategy may be called for one part of the list after another.
func (p Pool) Plan(s Strategy) ([]Planned, error) {
	planned, _, err := p.planAnew(s)
	return planned, err
}

// planAnew is Plan. It also returns how many rounds it took because of node windows, or to start jobs on few switches.
func (p Pool) planAnew(s Strategy) (planned []Planned, rounds int, err error) {
	return p.licensed(s, func(p Pool, s Strategy) ([]Planned, int, error) { return p.together(s, Pool.planNear) })
}

// planNear is planAnew for jobs that do not wait for nodes on few switches.
func (p Pool) planNear(s Strategy) (planned []Planned, rounds int, err error) {
	switch {
	case len(p.Reserved) == 0:
		planned, rounds, err = p.plan(s, mapRounds)
	case slices.ContainsFunc(p.Jobs, func(j PoolJob) bool { return j.IsMoldable() && !j.Fixed }):
		planned, rounds, err = p.planMoldable(s)
	default:
		planned, rounds, err = p.planReserved(s)
	}
	if err == nil {
		p.nearby(planned)
	}
	return planned, rounds, err
}

// plan is Plan without reservations, in at most `most` rounds; it returns how many it took.
func (p Pool) plan(s Strategy, most int) (_ []Planned, round int, _ error) {
	r, err := p.start(s)
	if err != nil {
		return nil, 0, err
	}
	tried := make(map[NodeBusy]bool)
	for ; ; round++ {
		planned, err := r.plan()
		var clash *MapError
		switch {
		case err == nil:
			return planned, round, nil
		case !errors.As(err, &clash):
			return nil, round, err
		}
		window := NodeBusy{clash.Node, clash.Start, clash.End}
		switch {
		case clash.Node >= 0 && r.holder[clash.Node] == clash.Job && clash.Start > clash.At:
			r.overrun(clash)
		case r.conservative:
			r.unfit[clash.Job] = "no nodes stay free for as long as it needs them"
		case round >= most || clash.Node < 0:
			r.holdBack()
		case tried[window]:
			r.busy = append(r.busy, NodeBusy{clash.Node, r.gapStart(window), clash.Start})
		default:
			tried[window] = true
			r.busy = append(r.busy, NodeBusy{clash.Node, min(clash.At, clash.Start-1), clash.Start})
		}
	}
}

// run is one call of Pool.Plan.
type run struct {
	pool         Pool
	strategy     Strategy
	busy         []NodeBusy
	holder       []int          // fixed job that holds the node, or free
	unfit        map[int]string // jobs that cannot be placed, and why
	conservative bool
	asked        map[int]Planned // the strategy's answer, if it is not called again
}

func (p Pool) start(s Strategy) (*run, error) {
	if p.Nodes < 1 || p.Nodes > MaxNodes {
		return nil, fmt.Errorf("pool of %d nodes", p.Nodes)
	}
	r := &run{pool: p, strategy: s, holder: make([]int, p.Nodes), unfit: make(map[int]string)}
	for n := range r.holder {
		r.holder[n] = free
	}
	for j, job := range p.Jobs {
		if !job.Fixed && len(job.Held) > 0 {
			return nil, fmt.Errorf("job %q holds nodes but does not run", job.ID)
		}
		for _, need := range job.Licenses {
			if need.License < 0 || need.License >= len(p.Licenses) {
				return nil, fmt.Errorf("job %q needs licence %d, which is not within 0 … %d", job.ID, need.License, len(p.Licenses)-1)
			}
		}
		for _, n := range job.Held {
			if n < 0 || n >= p.Nodes {
				return nil, fmt.Errorf("job %q holds node %d, which is not within 0 … %d", job.ID, n, p.Nodes-1)
			}
			if r.holder[n] != free {
				return nil, fmt.Errorf("jobs %q and %q both hold node %d", p.Jobs[r.holder[n]].ID, job.ID, n)
			}
			r.holder[n] = j
		}
	}
	for _, b := range p.Busy {
		if b.Node < 0 || b.Node >= p.Nodes {
			return nil, fmt.Errorf("busy node %d is not within 0 … %d", b.Node, p.Nodes-1)
		}
		if j := r.holder[b.Node]; j != free && b.Start <= p.Jobs[j].Submit && b.End > p.Jobs[j].Submit {
			continue // the job holds it, so other claims are wrong
		}
		r.busy = append(r.busy, b)
	}
	return r, nil
}

// overrun lets a running job keep a node despite other promises: the obstructing busy interval
// begins only when the job can first free the node.
func (r *run) overrun(clash *MapError) {
	for i, b := range r.busy {
		if b.Node == clash.Node && b.Start < clash.Until {
			r.busy[i].Start = min(clash.Until, b.End)
		}
	}
}

// gapStart returns when the node's gap before window begins.
func (r *run) gapStart(window NodeBusy) int64 {
	start := r.now()
	for _, b := range r.busy {
		if b.Node == window.Node && b.End < window.Start {
			start = max(start, b.End)
		}
	}
	return min(start, window.Start-1)
}

// now returns the earliest second at which any job may start.
func (r *run) now() int64 {
	now := exact.Horizon
	for _, j := range r.pool.Jobs {
		now = min(now, j.Submit)
	}
	return now
}

// holdBack is conservative: a node that no job holds is busy until its last busy interval ends; for
// a held node, that begins when it is first busy.
func (r *run) holdBack() {
	r.conservative = true
	whole := make(map[int]NodeBusy)
	now := r.now()
	for _, b := range r.busy {
		if b.Start >= b.End || b.End <= now {
			continue
		}
		if r.holder[b.Node] == free {
			b.Start = now
		}
		if w, ok := whole[b.Node]; ok {
			b.Start, b.End = min(b.Start, w.Start), max(b.End, w.End)
		}
		whole[b.Node] = b
	}
	r.busy = r.busy[:0]
	for n := range r.pool.Nodes {
		if b, ok := whole[n]; ok {
			r.busy = append(r.busy, b)
		}
	}
}

// plan runs one round.
func (r *run) plan() ([]Planned, error) {
	byNode, err := busyByNode(r.pool.Nodes, r.busy)
	if err != nil {
		return nil, err
	}
	var counts Timeline
	for _, list := range byNode {
		for _, b := range list {
			counts.Add(b.Start, b.End, 1)
		}
	}
	planned := make([]Planned, len(r.pool.Jobs))
	r.planFixed(&counts, planned)
	if err := r.planOthers(&counts, planned); err != nil {
		return nil, err
	}
	return planned, r.mapNodes(planned) // return the placements even if mapping fails
}

// planFixed places the running jobs and adds them to counts. All hold their nodes at least until
// their step's end. If one cannot continue because of an earlier one, it is placed first and all
// are tried again.
func (r *run) planFixed(counts *Timeline, planned []Planned) {
	var order []int
	for j, job := range r.pool.Jobs {
		if job.Fixed {
			order = append(order, j)
		}
	}
	given := counts.Clone()
	moved := make(map[int]bool)
	for again := true; again; {
		again = false
		*counts = *given.Clone()
		for _, j := range order {
			counts.AddPlacement(r.least(j))
		}
		for at, j := range order {
			job := r.pool.Jobs[j]
			counts.RemovePlacement(r.least(j))
			placed, ok := Fit(counts, r.pool.Nodes, job.Profile, FitOptions{
				NotBefore: job.Submit, Limit: r.limitOf(job.Job), Fixed: true, MaxDuration: job.MaxDuration,
			})
			planned[j] = Planned{Placement: placed, Unfit: r.unfit[j]}
			switch {
			case planned[j].Unfit != "":
				planned[j].Placement = Placement{}
			case ok:
				counts.AddPlacement(placed)
				continue
			case job.Profile.Validate() != nil:
				planned[j].Unfit = job.Profile.Validate().Error()
			case job.Profile.Peak() > r.pool.Nodes:
				planned[j].Unfit = fmt.Sprintf("it needs %d nodes, the pool has %d", job.Profile.Peak(), r.pool.Nodes)
			case !moved[j] && at > 0:
				moved[j] = true
				order = slices.Insert(slices.Delete(order, at, at+1), 0, j)
				again = true
			default:
				planned[j].Unfit = "the nodes of a coming step are not free in time, and its expand limit does not let it wait"
			}
			if again {
				break
			}
			counts.AddPlacement(r.stuck(j))
		}
	}
}

// least returns what a running job certainly holds: its nodes until its step's end.
func (r *run) least(j int) Placement {
	job := r.pool.Jobs[j]
	if len(job.Profile) == 0 {
		return Placement{Start: job.Submit}
	}
	return Placement{Start: job.Submit, Steps: job.Profile[:1]}
}

// stuck returns what a running job holds that cannot continue as planned: its nodes, for its whole
// profile.
func (r *run) stuck(j int) Placement {
	job := r.pool.Jobs[j]
	return Placement{Start: job.Submit, Steps: Profile{{Duration: max(job.Profile.Duration(), 1), Nodes: len(job.Held)}}}
}

// limitOf returns the expand limit of a job.
func (r *run) limitOf(job Job) ExpandLimit {
	if job.ExpandLimit != 0 {
		return job.ExpandLimit
	}
	return ExpandLimitOf(r.strategy)
}

// planOthers calls the strategy, without the jobs that turn out to fit nowhere.
func (r *run) planOthers(counts *Timeline, planned []Planned) error {
	problem := Problem{Nodes: r.pool.Nodes, Jobs: make([]Job, 0, len(r.pool.Jobs))}
	for _, b := range counts.Steps() {
		duration := Forever
		if b.End != Forever {
			duration = b.End - b.Start
		}
		problem.Busy = append(problem.Busy, Busy{Start: b.Start, Duration: duration, Nodes: b.Nodes})
	}
	index := make([]int, 0, len(r.pool.Jobs))
	for j, job := range r.pool.Jobs {
		switch {
		case job.Fixed:
		case r.unfit[j] != "":
			planned[j].Unfit = r.unfit[j]
		case job.Profile.Validate() != nil:
			planned[j].Unfit = job.Profile.Validate().Error()
		case job.LeastPeak() > r.pool.Nodes:
			planned[j].Unfit = fmt.Sprintf("it needs %d nodes, the pool has %d", job.LeastPeak(), r.pool.Nodes)
		default:
			index = append(index, j)
			problem.Jobs = append(problem.Jobs, job.Job)
		}
	}
	if len(index) == 0 {
		return nil
	}
	schedule, unfit, err := r.ask(problem, index)
	if err != nil {
		return fmt.Errorf("strategy %s: %w", r.strategy.Name(), err)
	}
	if len(schedule) != len(index) {
		return fmt.Errorf("strategy %s gave %d placements for %d jobs", r.strategy.Name(), len(schedule), len(index))
	}
	if r.asked == nil && asksOnce(r.strategy) {
		r.asked = make(map[int]Planned, len(index))
		for i, j := range index {
			r.asked[j] = Planned{Placement: schedule[i], Unfit: unfit[i]}
		}
	}
	problem, schedule, index = fitting(problem, schedule, index, unfit, planned)
	if schedule, err = r.check(problem, schedule); err != nil {
		return fmt.Errorf("strategy %s gave an invalid plan: %w", r.strategy.Name(), err)
	}
	options := r.options(problem, schedule)
	for i, j := range index {
		planned[j].Placement, planned[j].Options = schedule[i], options[i]
	}
	return nil
}

// ask calls the strategy or, if it was called already, keeps as much of its answer as possible.
// index holds the pool indices of the problem's jobs.
func (r *run) ask(p Problem, index []int) (Schedule, map[int]string, error) {
	if r.asked == nil {
		return planPartly(r.strategy, p)
	}
	limit := ExpandLimitOf(r.strategy)
	if IsRigid(r.strategy) {
		p, limit = p.Rigid(), 1
	}
	plan, unfit := make(Schedule, len(index)), map[int]string{}
	for i, j := range index {
		if plan[i] = r.asked[j].Placement; r.asked[j].Unfit != "" {
			unfit[i] = r.asked[j].Unfit
		}
	}
	return keepPartly(p, plan, unfit, limit)
}

// fitting leaves out the jobs that fit nowhere, and marks them in planned.
func fitting(p Problem, s Schedule, index []int, unfit map[int]string, planned []Planned) (Problem, Schedule, []int) {
	if len(unfit) == 0 {
		return p, s, index
	}
	all := p.Jobs
	p.Jobs = nil
	var schedule Schedule
	var rest []int
	for i, j := range index {
		if why, ok := unfit[i]; ok {
			planned[j].Unfit = why
			continue
		}
		p.Jobs, schedule, rest = append(p.Jobs, all[i]), append(schedule, s[i]), append(rest, j)
	}
	return p, schedule, rest
}

// check verifies a schedule. A schedule without evolution gets its steps back, each with the peak.
func (r *run) check(p Problem, s Schedule) (Schedule, error) {
	if !IsRigid(r.strategy) {
		return s, Verify(p, s, ExpandLimitOf(r.strategy))
	}
	if err := Verify(p.Rigid(), s, 1); err != nil {
		return nil, err
	}
	split := make(Schedule, len(s))
	for i, placed := range s {
		split[i] = inSteps(p.Jobs[i], placed)
	}
	return split, nil
}

// inSteps returns a placement without evolution, split into the steps of its profile.
func inSteps(j Job, placed Placement) Placement {
	steps := slices.Clone(j.Choice(placed.Choice))
	for k := range steps {
		steps[k].Nodes = placed.Steps[0].Nodes
	}
	placed.Steps = steps
	return placed
}

// options returns what the alternatives of moldable jobs would give.
func (r *run) options(p Problem, s Schedule) [][]Option {
	if !p.IsMoldable() || !IsRigid(r.strategy) {
		return Options(p, s, ExpandLimitOf(r.strategy))
	}
	whole := make(Schedule, len(s))
	for i, placed := range s {
		whole[i] = placed
		whole[i].Steps = Profile{{Duration: placed.Steps.Duration(), Nodes: placed.Steps.Peak()}}
	}
	all := Options(p.Rigid(), whole, 1)
	for i := range all {
		for k, o := range all[i] {
			if o.Fits {
				all[i][k].Placement = inSteps(p.Jobs[i], o.Placement)
			}
		}
	}
	return all
}

// mapNodes finds node IDs for all planned jobs.
func (r *run) mapNodes(planned []Planned) error {
	index, jobs, busy := r.mapping(planned)
	nodes, err := MapNodes(r.pool.Nodes, busy, jobs)
	if clash, ok := errors.AsType[*MapError](err); ok {
		clash.Job = index[clash.Job]
	}
	if err != nil {
		return err
	}
	for i, j := range index {
		planned[j].Nodes = nodes[i]
	}
	return nil
}

// mapping returns the planned jobs as MapNodes takes them, their indices, and what is busy.
func (r *run) mapping(planned []Planned) (index []int, jobs []MappedJob, busy []NodeBusy) {
	index, jobs = make([]int, 0, len(planned)), make([]MappedJob, 0, len(planned))
	busy = slices.Clone(r.busy)
	for j, job := range r.pool.Jobs {
		if planned[j].Unfit == "" {
			index = append(index, j)
			jobs = append(jobs, MappedJob{planned[j].Placement, job.Held, job.Driver, job.Prefer, job.Release, job.Was})
			continue
		}
		if job.Fixed { // no other job gets its nodes
			stuck := r.stuck(j)
			for _, n := range job.Held {
				busy = append(busy, NodeBusy{n, math.MinInt64, stuck.End()})
			}
		}
	}
	return index, jobs, busy
}
