package search

import (
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// listSearch anneals the order of a list that is placed job by job, each as
// early as it fits (Algorithm 1 without expansion). What the unchanged head of
// the list leaves free is kept, so that only the rest is placed again, and a
// list is given up as soon as it cannot be accepted any more. Costs are rounded, as
// they are compared with chance; what comes of it is compared exactly (offer).
type listSearch struct {
	shapes []shape
	mean   bool // minimise the sum of the completions, not the latest
	budget *budget
	random *rng

	stride int // jobs from one checkpoint to the next
	order  []int
	now    listState
	trial  listState
	spare  [2][]gap

	all      [][]shape // as in searcher
	moldable []int
	picks    []int // of the current list
}

// listState is a placed list. Index k of its slices tells of the k first jobs.
type listState struct {
	checkpoints [][]gap // what every stride-th head leaves free
	starts      []int64 // of the job at position k
	latest      []int64 // completion
	sum         []float64
}

const maxCheckpoints = 64

func newListSearch(shapes []shape, gaps []gap, order []int, b *budget, random *rng) *listSearch {
	n := len(shapes)
	l := &listSearch{shapes: slices.Clone(shapes), budget: b, random: random, stride: n/maxCheckpoints + 1, order: slices.Clone(order)}
	for _, s := range []*listState{&l.now, &l.trial} {
		s.checkpoints = make([][]gap, n/l.stride+1)
		s.starts = make([]int64, n)
		s.latest = make([]int64, n+1)
		s.sum = make([]float64, n+1)
		s.latest[0] = math.MinInt64
	}
	l.now.checkpoints[0] = gaps
	return l
}

// cost returns the cost of a list whose jobs are all placed.
func (l *listSearch) cost(s *listState) float64 {
	if l.mean {
		return s.sum[len(l.shapes)]
	}
	return float64(s.latest[len(l.shapes)])
}

// place tries order, which differs from the current one from position changed on.
// It is false if that costs more than limit.
func (l *listSearch) place(order []int, changed int, limit float64) bool {
	n := len(order)
	check := changed / l.stride
	first := check * l.stride
	gaps := l.now.checkpoints[check]
	rest := 0.0 // the least that the jobs not yet placed add to the sum
	if l.mean {
		for _, k := range order[first:] {
			rest += float64(l.shapes[k].duration)
		}
	}
	latest, sum := l.now.latest[first], l.now.sum[first]
	l.trial.latest[first], l.trial.sum[first] = latest, sum
	for i := first; i < n; i++ {
		k := order[i]
		j := &l.shapes[k]
		var start int64
		if i < changed {
			start = l.now.starts[i]
		} else {
			start = place(gaps, j, j.submit)
			l.budget.used++
		}
		end := start + j.duration
		if start > exact.Horizon {
			return false
		}
		latest = max(latest, end)
		sum += float64(end - j.submit)
		if l.mean {
			rest -= float64(j.duration)
			if sum+rest > limit {
				return false
			}
		} else if float64(latest) > limit {
			return false
		}
		l.trial.starts[i], l.trial.latest[i+1], l.trial.sum[i+1] = start, latest, sum
		if i+1 == n {
			break
		}
		if c := (i + 1) / l.stride; c*l.stride == i+1 {
			l.trial.checkpoints[c] = occupy(l.trial.checkpoints[c], gaps, j, start, gaps[0].start)
			gaps = l.trial.checkpoints[c]
		} else {
			spare := &l.spare[i&1]
			*spare = occupy(*spare, gaps, j, start, gaps[0].start)
			gaps = *spare
		}
	}
	return true
}

// accept makes the list tried last the current one.
func (l *listSearch) accept(order []int, changed int) {
	copy(l.order, order)
	first := changed / l.stride
	for c := first + 1; c < len(l.now.checkpoints); c++ {
		l.now.checkpoints[c], l.trial.checkpoints[c] = l.trial.checkpoints[c], l.now.checkpoints[c]
	}
	first *= l.stride
	copy(l.now.starts[first:], l.trial.starts[first:])
	copy(l.now.latest[first:], l.trial.latest[first:])
	copy(l.now.sum[first:], l.trial.sum[first:])
}

// run anneals for that many evaluations, between the relative temperatures hot and cold, and writes
// the starts of the best list into starts, its alternatives into picks. It returns false if the
// list to start from cannot be placed.
func (l *listSearch) run(evaluations int64, hot, cold float64, starts []int64, picks []int) bool {
	n := len(l.order)
	order := slices.Clone(l.order)
	if !l.place(order, 0, math.Inf(1)) {
		return false
	}
	l.accept(order, 0)
	cost := l.cost(&l.now)
	best := cost
	keep := func() {
		for i, k := range l.order {
			starts[k] = l.now.starts[i]
		}
		copy(picks, l.picks)
	}
	keep()
	if n < 2 {
		return true
	}
	scale := cost
	begin := l.budget.used
	temperature := 0.0
	for moves := 0; !l.budget.spent(); moves++ {
		progress := float64(l.budget.used-begin) / float64(evaluations)
		if progress >= 1 {
			break
		}
		if moves%16 == 0 {
			temperature = scale * hot * math.Pow(cold/hot, progress)
		}
		copy(order, l.order)
		limit := 0.0
		if len(l.moldable) > 0 && l.random.below(3) == 0 {
			limit = cost - temperature*math.Log(1-l.random.float())
			if l.mold(order, limit) {
				if cost = l.cost(&l.now); cost < best {
					best = cost
					keep()
				}
			}
			continue
		}
		a, b := l.random.below(n), l.random.below(n-1)
		if b >= a {
			b++
		}
		if l.random.below(2) == 0 {
			order[a], order[b] = order[b], order[a]
		} else {
			moveItem(order, a, b)
		}
		limit = cost - temperature*math.Log(1-l.random.float())
		changed := min(a, b)
		if !l.place(order, changed, limit) {
			continue
		}
		l.accept(order, changed)
		cost = l.cost(&l.now)
		if cost < best {
			best = cost
			keep()
		}
	}
	return true
}

// mold gives one or two jobs of the current list another alternative if that costs no more than
// limit. A job that takes less often helps only if another does, too.
func (l *listSearch) mold(order []int, limit float64) bool {
	var jobs, before [2]int
	count, changed := 1+l.random.below(2), len(order)
	for i := range count {
		k := l.moldable[l.random.below(len(l.moldable))]
		jobs[i], before[i] = k, l.picks[k]
		l.picks[k] = another(l.all[k], l.picks[k], l.random)
		l.shapes[k] = l.all[k][l.picks[k]]
		changed = min(changed, slices.Index(order, k))
	}
	if l.place(order, changed, limit) {
		l.accept(order, changed)
		return true
	}
	for i := count - 1; i >= 0; i-- {
		k := jobs[i]
		l.picks[k] = before[i]
		l.shapes[k] = l.all[k][before[i]]
	}
	return false
}

// moveItem takes the item at a out and inserts it at b.
func moveItem(order []int, a, b int) {
	item := order[a]
	if a < b {
		copy(order[a:b], order[a+1:b+1])
	} else {
		copy(order[b+1:a+1], order[b:a])
	}
	order[b] = item
}
