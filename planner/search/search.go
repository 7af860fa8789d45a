package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Objective is the quantity that a search minimises.
type Objective int

const (
	Makespan       Objective = iota // the latest completion
	MeanCompletion                  // the average time from submission to completion
)

// String is "makespan" or "mean-completion".
func (o Objective) String() string {
	if o == MeanCompletion {
		return "mean-completion"
	}
	return "makespan"
}

// DefaultEvaluations is the search effort where none is given, some 25 ms on a
// core of 2024: placements of one job that are tried.
const DefaultEvaluations = 100_000

// Search plans the whole list at once instead of job by job. No job is expanded, so nothing is
// wasted, and a plan is never worse on the objective than noX's. (If a job's own ExpandLimit makes
// noX expand it, and nothing better is found, the plan and its waste are noX's.) A moldable job may
// get any of its alternatives for the sake of the whole plan. A job that prefers the fewest
// node-hours may get any alternative that costs no more than its cheapest.
//
// A beam search places the jobs in the order of their starts, forwards in time. If nothing else is
// in use and all jobs are submitted together, it also works backwards. It is repeated with more and
// more partial schedules kept. Simulated annealing over list orders improves what the beams found;
// for the mean completion, it works without beams. Equal fields give equal plans, unless Stop cuts
// a search short.
type Search struct {
	Objective Objective

	// Fair means that no job completes later than in noX's plan, so that the list's order stays the
	// order of priority. Then only expansion (Limit) can improve the plan. Without expansion, the
	// plan is noX's: its first job completes as early as possible and may not complete later, so
	// its place is fixed; then so is the second job's, and so on.
	Fair bool

	// Limit, if above 1, lets jobs be expanded up to it where that pays; 0 means no
	// expansion. A job's own ExpandLimit overrides it.
	Limit profile.ExpandLimit

	// Seed of the random choices.
	Seed uint64

	// MaxEvaluations bounds how many placements of one job are tried, except for a few that
	// complete the plan. 0 means DefaultEvaluations or, for long lists, 1,000 per job, at most
	// 10,000,000. Below 0, only Stop is a bound.
	MaxEvaluations int64

	// Stop, if not nil, is asked often whether to stop now (a time budget).
	Stop func() bool
}

// SearchResult is a plan and what is known about it.
type SearchResult struct {
	Schedule paper.Schedule
	// Whole numbers, or a sum of them divided by the number of jobs, rounded at the end
	// only: the larger of two never comes out as the smaller.
	Objective float64 // of the plan, in seconds
	Baseline  float64 // of the plan of noX, in seconds
	Bound     Bound   // no plan within the expand limits is better than this

	Evaluations int64 // placements tried
}

// Gap returns how far the objective exceeds the bound, in percent.
func (r SearchResult) Gap() float64 {
	if r.Bound.Value == 0 {
		return 0
	}
	return 100 * (r.Objective - r.Bound.Value) / r.Bound.Value
}

// Name is "search" or "search+fair", with +<limit>X where jobs may be expanded.
func (s Search) Name() string {
	name := "search"
	if s.Fair {
		name += "+fair"
	}
	if s.Limit > 1 {
		name += "+" + s.Limit.String() + "X"
	}
	return name
}

// ByName returns search or search+fair, also with +<limit>X, with the default budget.
func ByName(name string) (paper.Strategy, error) {
	var search Search
	rest, ok := strings.CutPrefix(name, "search")
	rest, search.Fair = strings.CutPrefix(rest, "+fair")
	if ok && rest == "" {
		return search, nil
	}
	text, plus := strings.CutPrefix(rest, "+")
	text, x := strings.CutSuffix(text, "X")
	if !ok || !plus || !x {
		return nil, fmt.Errorf("unknown strategy %.100q", name)
	}
	var err error
	if search.Limit, err = profile.ParseExpandLimit(text); err != nil {
		return nil, fmt.Errorf("strategy %.100q: %w", name, err)
	}
	return search, nil
}

// ExpandLimit returns the limit of jobs without their own.
func (s Search) ExpandLimit() profile.ExpandLimit { return max(s.Limit, 1) }

// AsksOnce reports that searching again for every node in the way takes too long.
func (Search) AsksOnce() bool { return true }

// Moldable reports that alternatives are moves of the search.
func (Search) Moldable() bool { return true }

// Plan is Optimise without the figures.
func (s Search) Plan(p paper.Problem) (paper.Schedule, error) {
	r, err := s.Optimise(p)
	return r.Schedule, err
}

// Optimise searches until the budget is spent or the bound is met. It takes
// O(steps × gaps) per evaluation at worst, and some 300 ns on the paper's tests.
func (s Search) Optimise(p paper.Problem) (SearchResult, error) {
	if s.MaxEvaluations < 0 && s.Stop == nil {
		return SearchResult{}, errors.New("search without end: neither MaxEvaluations nor Stop")
	}
	if s.Limit != 0 {
		if err := s.Limit.Validate(); err != nil {
			return SearchResult{}, err
		}
	}
	base, err := noX(p)
	if err != nil {
		return SearchResult{}, err
	}
	r := SearchResult{Schedule: base, Baseline: s.objective(p, base), Bound: LowerBound(p, s.Objective, s.ExpandLimit())}
	r.Objective = r.Baseline
	if len(p.Jobs) > 0 && r.Objective > r.Bound.Value {
		x := newSearcher(s, p, &r)
		x.run()
		r.Evaluations = x.budget.used
	}
	return r, nil
}

// noX returns the plan of the paper's strategy without expansion.
func noX(p paper.Problem) (paper.Schedule, error) {
	s, err := paper.ByName("noX")
	if err != nil {
		return nil, err
	}
	return s.Plan(p)
}

func (s Search) objective(p paper.Problem, plan paper.Schedule) float64 {
	latest, total := completions(p, plan)
	switch {
	case len(plan) == 0:
		return 0
	case s.Objective == MeanCompletion:
		return total.Float() / float64(len(plan))
	}
	return float64(latest)
}

// completions returns the latest completion and the seconds from submission to
// completion of all jobs.
func completions(p paper.Problem, plan paper.Schedule) (latest int64, total exact.Wide) {
	latest = exact.Dawn
	for i, placed := range plan {
		latest = max(latest, placed.End())
		total.Add(1, placed.End()-p.Jobs[i].Submit)
	}
	return latest, total
}

// searcher is one search.
type searcher struct {
	Search
	problem  paper.Problem
	result   *SearchResult
	shapes   []shape
	gaps     []gap
	budget   budget
	random   rng
	all      [][]shape // of a moldable job, those that it may have, by alternative; nil: it is not moldable
	moldable []int     // jobs that are
	picks    []int     // of the best plan so far: alternatives
	deadline []int64   // fair completions; nil: none
	starts   []int64   // of the best plan so far
	scratch  []int64
	forward  *beam
	backward *beam // nil where time cannot be turned round
}

func newSearcher(s Search, p paper.Problem, r *SearchResult) *searcher {
	n := len(p.Jobs)
	x := &searcher{Search: s, problem: p, result: r, shapes: make([]shape, n), gaps: openGaps(p.Timeline(), p.Nodes),
		budget: budget{most: s.MaxEvaluations, stop: s.Stop}, random: rng{s.Seed}, starts: make([]int64, n), scratch: make([]int64, n),
		all: make([][]shape, n), picks: make([]int, n)}
	if s.MaxEvaluations == 0 {
		x.budget.most = max(DefaultEvaluations, min(1000*int64(n), 10_000_000))
	}
	area, origin, together := 0.0, exact.Forever, true
	for i, j := range p.Jobs {
		x.picks[i] = r.Schedule[i].Choice
		x.shapes[i] = newShape(j.Settled(x.picks[i]))
		if x.all[i] = shapesOf(p, j); x.all[i] != nil {
			x.moldable = append(x.moldable, i)
		}
		x.starts[i] = r.Schedule[i].Start
		area += x.shapes[i].area
		origin = min(origin, j.Submit)
		together = together && j.Submit == p.Jobs[0].Submit
	}
	if s.Fair {
		x.deadline = make([]int64, n)
		for i, placed := range r.Schedule {
			x.deadline[i] = placed.End()
		}
	}
	x.forward = &beam{shapes: x.shapes, gaps: x.gaps, capacity: float64(p.Nodes), origin: origin, area: area,
		budget: &x.budget, starts: make([]int64, n)}
	if together && len(p.Busy) == 0 {
		b := *x.forward
		b.shapes, b.starts = make([]shape, n), make([]int64, n)
		for i, shape := range x.shapes {
			b.shapes[i] = shape.mirrored()
		}
		x.backward = &b
	}
	return x
}

// run alternates between the methods, with ever more effort, until the budget is
// spent or the bound is met.
func (x *searcher) run() {
	n := int64(len(x.shapes))
	expand := x.ExpandLimit() > 1
	switch {
	case n == 1 && expand:
		newExpandSearch(x).run(100 * fitEvaluations)
		return
	case x.Fair && (expand || len(x.moldable) > 0):
		newExpandSearch(x).run(math.MaxInt64)
		return
	case x.Fair || n == 1:
		return // noX is the only one
	case x.Objective == MeanCompletion:
		x.smallestFirst()
		if n > maxAnnealed {
			return
		}
	}
	// The first passes take at most a quarter of the evaluations; with a time
	// budget, of some 300 ms.
	most := x.budget.most
	if most <= 0 {
		most = 1_000_000
	}
	width := int(max(1, min(firstBeamWidth, most/4/(n*min(n, beamWindow)))))
	for round := 0; !x.budget.spent() && x.result.Objective > x.result.Bound.Value; round++ {
		before := x.budget.used
		x.budget.used++ // so that there is an end whatever the methods find to do
		effort := n * 2000 << min(round, 20)
		if x.Objective == Makespan {
			x.beams(width, round)
			width = min(2*width, maxBeamWidth)
			effort = (x.budget.used - before) / 2
		}
		x.anneal(effort)
		if expand {
			newExpandSearch(x).run(x.budget.used - before)
		}
	}
}

const (
	firstBeamWidth = 16
	maxBeamWidth   = 1 << 14
	beamWindow     = 64   // jobs in list order from which the next one is chosen
	maxAnnealed    = 2000 // jobs: with more, placing a list again takes too long
)

// beams runs the beam search once in each direction.
func (x *searcher) beams(width, round int) {
	for _, b := range []*beam{x.forward, x.backward} {
		if b == nil {
			continue
		}
		guide := beamGuide{curve: 0.5, steep: true}
		if round > 0 {
			guide = beamGuide{curve: x.random.float(), steep: x.random.below(2) == 0}
		}
		latest, _ := completions(x.problem, x.result.Schedule)
		end, ok := b.run(width, beamWindow, latest, guide)
		if !ok {
			continue
		}
		copy(x.scratch, b.starts)
		if b == x.backward {
			for i := range x.scratch {
				x.scratch[i] = b.origin + end - (x.scratch[i] + x.shapes[i].duration)
			}
		}
		x.offer(x.scratch, x.picks)
	}
}

// anneal improves the order of the best plan's starts.
func (x *searcher) anneal(evaluations int64) {
	if x.budget.most > 0 {
		evaluations = min(evaluations, x.budget.most-x.budget.used)
	}
	if evaluations <= 0 || len(x.shapes) > maxAnnealed {
		return
	}
	l := newListSearch(x.shapes, x.gaps, orderOf(x.starts), &x.budget, &x.random)
	l.all, l.moldable, l.picks = x.all, x.moldable, slices.Clone(x.picks)
	l.mean = x.Objective == MeanCompletion
	hot, cold := 0.003, 0.0005
	if l.mean {
		hot, cold = 0.01, 0.001
	}
	picks := slices.Clone(x.picks)
	if l.run(evaluations, hot, cold, x.scratch, picks) {
		x.offer(x.scratch, picks)
	}
}

// smallestFirst plans the jobs in the order of their areas.
func (x *searcher) smallestFirst() {
	order := make([]int, len(x.shapes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.shapes[a].area, x.shapes[b].area) })
	sorted := paper.Problem{Nodes: x.problem.Nodes, Busy: x.problem.Busy}
	for _, k := range order {
		j := x.problem.Jobs[k]
		sorted.Jobs = append(sorted.Jobs, paper.Job{ID: j.ID, Submit: j.Submit, Profile: j.Choice(x.picks[k])})
	}
	plan, err := noX(sorted)
	x.budget.used += int64(len(order))
	if err != nil {
		return // some job fits only before others
	}
	for i, k := range order {
		x.scratch[k] = plan[i].Start
	}
	x.offer(x.scratch, x.picks)
}

// offer keeps a plan if it is the best so far. Of two with the same makespan,
// that with the smaller mean completion is better. picks are the jobs' alternatives.
func (x *searcher) offer(starts []int64, picks []int) {
	plan := make(paper.Schedule, len(starts))
	for i, start := range starts {
		plan[i] = profile.Placement{Start: start, Steps: x.problem.Jobs[i].Choice(picks[i]), Choice: picks[i]}
	}
	if x.scoreOf(x.result.Schedule).objective.Less(x.scoreOf(plan).objective) {
		return
	}
	if len(plan) <= maxAnnealed {
		x.settle(plan)
	}
	if x.scoreOf(plan).less(x.scoreOf(x.result.Schedule)) {
		x.result.Schedule, x.result.Objective = plan, x.objective(x.problem, plan)
		for i, placed := range plan {
			x.starts[i] = placed.Start
		}
		x.pick(picks)
	}
}

// settle moves the jobs, from the first to start on, as early as they fit among
// all others: none gets later. O(jobs × steps) at worst.
func (x *searcher) settle(plan paper.Schedule) {
	res := x.problem.Timeline()
	starts := make([]int64, len(plan))
	for i, placed := range plan {
		res.AddPlacement(placed)
		starts[i] = placed.Start
	}
	for _, k := range orderOf(starts) {
		res.RemovePlacement(plan[k])
		j := x.problem.Jobs[k]
		if placed, ok := paper.Fit(res, x.problem.Nodes, j.Choice(plan[k].Choice), paper.FitOptions{NotBefore: j.Submit, Limit: 1}); ok {
			placed.Choice = plan[k].Choice
			plan[k] = placed
		}
		res.AddPlacement(plan[k])
	}
}

// orderOf returns the jobs in the order of their starts.
func orderOf(starts []int64) []int {
	order := make([]int, len(starts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(starts[a], starts[b]) })
	return order
}

// budget counts evaluations.
type budget struct {
	used, most int64 // most ≤ 0: no bound
	stop       func() bool
}

func (b *budget) spent() bool {
	return b.most > 0 && b.used >= b.most || b.stop != nil && b.stop()
}

// rng is SplitMix64: the same numbers on every machine and version.
type rng struct{ state uint64 }

func (r *rng) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *rng) float() float64  { return float64(r.next()>>11) / (1 << 53) }
func (r *rng) below(n int) int { return int(r.next() % uint64(n)) }
