package search

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
)

// expandSearch climbs over list orders, over which jobs may be expanded, and over moldable jobs'
// alternatives. FitMinWaste places every list, so that an earlier completion wastes no more than
// necessary.
type expandSearch struct {
	*searcher
	order    []int
	expanded []bool // whether a job may be expanded
	picks    []int  // alternatives
	plan     paper.Schedule
	score    score
}

// score is the score of a plan: smaller is better, compared in this order.
type score struct{ objective, completions, area exact.Wide }

func (a score) less(b score) bool {
	return cmp.Or(a.objective.Compare(b.objective), a.completions.Compare(b.completions), a.area.Compare(b.area)) < 0
}

// fitEvaluations is how many placements of a shape take as long as one fit.
const fitEvaluations = 16

func (x *searcher) scoreOf(plan paper.Schedule) score {
	latest, total := completions(x.problem, plan)
	s := score{exact.Wide{Lo: uint64(latest - exact.Dawn)}, total, exact.Wide{}}
	if x.Objective == MeanCompletion {
		s.objective = total
	}
	for _, placed := range plan {
		s.area.Plus(placed.Steps.WideArea())
	}
	return s
}

// newExpandSearch starts from the best plan so far: its order and its expanded jobs.
func newExpandSearch(x *searcher) *expandSearch {
	n := len(x.shapes)
	e := &expandSearch{searcher: x, order: orderOf(x.starts), expanded: make([]bool, n), picks: slices.Clone(x.picks)}
	if x.Fair {
		for i := range e.order {
			e.order[i] = i // the only list that is certainly fair
		}
	}
	return e
}

// place places the list; nil if it breaks a deadline or some job does not fit.
func (e *expandSearch) place(order []int, expanded []bool, picks []int) paper.Schedule {
	res := e.problem.Timeline()
	plan := make(paper.Schedule, len(order))
	for _, k := range order {
		j := e.problem.Jobs[k]
		o := paper.FitOptions{NotBefore: j.Submit, Limit: 1}
		if expanded[k] {
			o.Limit = e.Limit
		}
		if j.ExpandLimit != 0 {
			o.Limit = j.ExpandLimit
		}
		placed, ok := paper.FitMinWaste(res, e.problem.Nodes, j.Choice(picks[k]), o)
		placed.Choice = picks[k]
		e.budget.used += fitEvaluations
		if !ok || e.deadline != nil && placed.End() > e.deadline[k] {
			return nil
		}
		plan[k] = placed
		res.AddPlacement(placed)
	}
	return plan
}

// run climbs for that many evaluations; it accepts ties, to cross plateaus.
func (e *expandSearch) run(evaluations int64) {
	n := len(e.order)
	begin := e.budget.used
	if e.plan = e.place(e.order, e.expanded, e.picks); e.plan == nil {
		return
	}
	e.score = e.scoreOf(e.plan)
	e.keep()
	order, expanded, picks := make([]int, n), make([]bool, n), make([]int, n)
	for e.budget.used-begin < evaluations && !e.budget.spent() {
		copy(order, e.order)
		copy(expanded, e.expanded)
		copy(picks, e.picks)
		for range 1 + e.random.below(2) {
			if len(e.moldable) > 0 && e.random.below(3) == 0 {
				k := e.moldable[e.random.below(len(e.moldable))]
				picks[k] = another(e.all[k], picks[k], &e.random)
			} else if k := e.random.below(n); n == 1 || e.random.below(2) == 0 {
				expanded[k] = !expanded[k]
			} else {
				moveItem(order, k, e.random.below(n))
			}
		}
		plan := e.place(order, expanded, picks)
		if plan == nil {
			continue
		}
		if s := e.scoreOf(plan); !e.score.less(s) {
			e.plan, e.score = plan, s
			e.order, order = order, e.order
			e.expanded, expanded = expanded, e.expanded
			e.picks, picks = picks, e.picks
			e.keep()
		}
	}
}

// keep remembers the plan if it is the best so far.
func (e *expandSearch) keep() {
	if e.score.less(e.scoreOf(e.result.Schedule)) {
		e.result.Schedule, e.result.Objective = slices.Clone(e.plan), e.objective(e.problem, e.plan)
	}
}
