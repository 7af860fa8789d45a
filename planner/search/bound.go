package search

import (
	"math/bits"
	"slices"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Bound is a value that no plan can beat, and the reason.
type Bound struct {
	Value  float64 // seconds, like the objective
	Reason string  // "critical path", "area", "large steps" or "completions one by one"
}

// LowerBound proves a bound on the objective of any plan of a valid problem in which jobs are
// expanded at most up to their own limits or, without one, to limit. It takes the largest of these:
//
//   - critical path: a job by itself on the cluster;
//   - area: the node-seconds of the jobs submitted from a moment on fit only
//     into what is free after it;
//   - large steps: the same with node counts that a dual feasible function has
//     changed (Fekete and Schepers, 2001). Such a function keeps the sum of
//     counts that fit side by side within the cluster, so that what fits still
//     fits; it counts steps that share the cluster with little else as the whole
//     cluster. Among them: steps above half the nodes never overlap;
//   - for the mean completion, the k-th completion in time is neither before the
//     k shortest jobs nor before the k smallest areas.
//
// All sums and comparisons use whole numbers, so that no bound depends on rounding.
//
// It takes O(f × (steps + 32 busy)) with f ≤ 141 functions, and a Fit of every job by itself.
func LowerBound(p paper.Problem, o Objective, limit profile.ExpandLimit) Bound {
	if len(p.Jobs) == 0 {
		return Bound{0, "critical path"}
	}
	busy := p.Timeline()
	gaps := openGaps(busy, p.Nodes)
	ends := make([]int64, len(p.Jobs))
	for i, j := range p.Jobs {
		options := paper.FitOptions{NotBefore: j.Submit, Limit: limit}
		if j.ExpandLimit != 0 {
			options.Limit = j.ExpandLimit
		}
		ends[i] = exact.Horizon // if it fits nowhere, there is no plan at all
		for k := range j.Choices() {
			if placed, ok := paper.Fit(busy, p.Nodes, j.Choice(k), options); ok {
				ends[i] = min(ends[i], placed.End())
			}
		}
	}
	if o == MeanCompletion {
		return meanBound(p, gaps, ends)
	}
	best, reason := slices.Max(ends), "critical path"
	release := submissions(p)
	areas := make([]exact.Wide, len(release))
	for k, f := range feasibleFunctions(p) {
		clear(areas) // of the jobs submitted from release[i] on
		for _, j := range p.Jobs {
			last, found := slices.BinarySearch(release, j.Submit)
			if !found {
				last--
			}
			areas[last].Plus(leastArea(j, f))
		}
		for i := len(release) - 1; i >= 0; i-- {
			if i+1 < len(release) {
				areas[i].Plus(areas[i+1])
			}
			if end := filled(gaps, p.Nodes, release[i], areas[i], f); end > best {
				best, reason = end, "large steps"
				if k == 0 {
					reason = "area"
				}
			}
		}
	}
	return Bound{float64(best), reason}
}

// leastArea returns the node-seconds, counted by f, of the alternative that has the fewest.
func leastArea(j paper.Job, f func(int64) int64) (least exact.Wide) {
	for k := range j.Choices() {
		var area exact.Wide
		for _, s := range j.Choice(k) {
			area.Add(f(int64(s.Nodes)), s.Duration)
		}
		if k == 0 || area.Less(least) {
			least = area
		}
	}
	return least
}

// submissions returns the moments from which the area is counted: all if they are few, otherwise
// some.
func submissions(p paper.Problem) []int64 {
	var at []int64
	for _, j := range p.Jobs {
		at = append(at, j.Submit)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	const most = 32
	if n := len(at); n > most {
		some := make([]int64, most)
		for i := range some {
			some[i] = at[i*n/most]
		}
		at = some
	}
	return at
}

// filled returns the first second at which the free nodes from a moment on can have held area, both
// counted by f, or never.
func filled(gaps []gap, nodes int, from int64, area exact.Wide, f func(int64) int64) int64 {
	if area == (exact.Wide{}) {
		return from
	}
	whole := f(int64(nodes))
	for k := 0; gaps[k].start < never; k++ {
		start, end := max(gaps[k].start, from), gaps[k+1].start
		if end <= from {
			continue
		}
		free := whole
		if used := int64(nodes) - gaps[k].free; used > 0 {
			free = max(0, whole-f(used))
		}
		var took exact.Wide
		took.Add(free, end-start)
		if took.Less(area) {
			area.Minus(took)
			continue
		}
		seconds, rest := bits.Div64(area.Hi, area.Lo, uint64(free)) // at most end − start
		if rest > 0 {
			seconds++
		}
		return start + int64(seconds)
	}
	return never
}

// identity returns n: it counts nodes as they are.
func identity(n int64) int64 { return n }

// feasibleFunctions returns dual feasible functions of node counts, the identity first, each scaled
// to whole numbers: at most 12.
func feasibleFunctions(p paper.Problem) []func(int64) int64 {
	nodes := int64(p.Nodes)
	fs := []func(int64) int64{identity}
	// Steps above nodes − least fill the cluster beside others of at least least nodes; smaller
	// ones do not count.
	var counts []int64
	steps := 0
	for _, j := range p.Jobs {
		steps += len(j.Profile)
		for _, s := range j.Profile { // one profile of a moldable job is enough: any function is valid
			if n := int64(s.Nodes); n <= nodes/2 {
				counts = append(counts, n)
			} else if n < nodes {
				counts = append(counts, nodes-n+1)
			}
		}
	}
	slices.Sort(counts)
	counts = slices.Compact(counts)
	most := min(128, max(8, 4_000_000/steps)) // long lists: fewer, to save time
	for i := range min(len(counts), most) {
		least := counts[i*len(counts)/min(len(counts), most)]
		if 2*least > nodes {
			continue
		}
		fs = append(fs, func(n int64) int64 {
			switch {
			case n > nodes-least:
				return nodes
			case n < least:
				return 0
			}
			return n
		})
	}
	// Counts rounded to k-ths: only k steps above 1/(k+1) of the nodes fit.
	for k := int64(1); k <= 12; k++ {
		fs = append(fs, func(n int64) int64 {
			if whole := n * (k + 1) / nodes * nodes; whole != n*(k+1) {
				return whole
			}
			return n * k
		})
	}
	return fs
}

// meanBound bounds the mean completion.
func meanBound(p paper.Problem, gaps []gap, ends []int64) Bound {
	areas := make([]exact.Wide, len(p.Jobs))
	from := exact.Forever
	for i, j := range p.Jobs {
		areas[i] = leastArea(j, identity)
		from = min(from, j.Submit)
	}
	slices.SortFunc(areas, exact.Wide.Compare)
	slices.Sort(ends)
	var total, area exact.Wide // of the seconds from submission on, each counted from the first
	for i, end := range ends {
		area.Plus(areas[i])
		total.Add(1, max(end, filled(gaps, p.Nodes, from, area, identity))-from)
	}
	for _, j := range p.Jobs {
		total.Minus(exact.Wide{Lo: uint64(j.Submit - from)})
	}
	return Bound{total.Float() / float64(len(p.Jobs)), "completions one by one"}
}
