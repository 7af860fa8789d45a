package paper

import (
	"github.com/evoslurm/evoslurm/planner/grid"
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// Fitting with a grid.

// asOneOnGrid returns the first second ≥ start at which a profile fits whose steps move together.
// If there is none before until, it returns some second from then on.
func (f *fitter) asOneOnGrid(capacity int, p profile.Profile, start int64) int64 {
	pivot := f.pivot(p)
	after := f.starts[pivot.Pivot]
	until := exact.AddTime(f.until, after)
	for start < f.until {
		if start = f.grid.Next(start+after, pivot, until) - after; start >= f.until {
			break
		}
		possible := f.grid.Res.AsOne(p, start, capacity)
		if possible == start {
			break
		}
		start = possible
	}
	return start
}

// pivot returns the pattern of a profile whose steps move together, given each step's offset from
// the first.
func (f *fitter) pivot(p profile.Profile) *grid.Pattern {
	pat := &f.pattern
	pat.Clear()
	f.grid.Choose(pat, p, grid.PivotGroup)
	// The other steps first: the sides cover most of what the grid knows about these two.
	for i := range p {
		if i != pat.Pivot && i+1 != pat.Pivot {
			f.grid.Probe(pat, f.starts[i]-f.starts[pat.Pivot], p[i])
		}
	}
	pat.Sort()
	for i := max(pat.Pivot-1, 0); i <= pat.Pivot; i++ {
		f.grid.Probe(pat, f.starts[i]-f.starts[pat.Pivot], p[i])
	}
	f.grid.Ready(pat)
	f.grid.Demand(pat, -f.starts[pat.Pivot], p)
	return pat
}

// fromPivot raises the starts of the steps as far as known to be necessary. It begins with the
// hardest pair of steps, which leaves the fewest places to search. It returns false if there is no
// fit.
func (f *fitter) fromPivot(res occupancy, capacity int, p profile.Profile, o FitOptions) bool {
	pivot := f.pattern.Pivot
	until := f.latest(pivot)
	for {
		start := f.earliestFree(res, capacity, p, pivot, until)
		if start >= until {
			return false
		}
		if f.starts[pivot] = start; !f.pullUp(res, capacity, p, pivot) {
			continue
		}
		if !f.place(pivot, res, capacity, p, o) {
			return false
		}
		if f.starts[pivot] == start || f.pullUp(res, capacity, p, pivot) {
			return true
		}
	}
}

// pullUp raises the starts of the steps before step last: each holds its nodes until the next one
// starts. It returns false if this also raises the start of step last.
func (f *fitter) pullUp(res occupancy, capacity int, p profile.Profile, last int) bool {
	starts := f.starts
	for i := last - 1; i >= 0; i-- {
		start := starts[i]
		if f.longest[i] < exact.Forever/2 { // otherwise the difference may overflow and says nothing
			start = max(start, starts[i+1]-f.longest[i])
		}
		limit := capacity - p[i].Nodes
		starts[i] = res.LastAbove(start, starts[i+1], limit)
		if starts[i] == starts[i+1] { // what is in its way may last for years
			if starts[i] = res.FirstAtMost(starts[i], limit); starts[i] > exact.Horizon {
				starts[last] = exact.Horizon + 1 // there is no fit
				return false
			}
		}
		if starts[i]+p[i].Duration <= starts[i+1] {
			continue
		}
		for ; i < last; i++ {
			if starts[i]+p[i].Duration <= starts[i+1] {
				break
			}
			starts[i+1] = starts[i] + p[i].Duration
		}
		if i == last {
			return false
		}
		i++ // its start has not changed: continue from there
	}
	return true
}

// earliestFreeOnGrid is earliestFree with the grid.
func (f *fitter) earliestFreeOnGrid(capacity int, p profile.Profile, i int, until int64) int64 {
	pat := f.patternOf(p, i)
	steps, before := p[i:i+1], int64(0)
	if i > 0 { // the step before holds its nodes until then
		steps, before = p[i-1:i+1], p[i-1].Duration
	}
	for start := f.starts[i]; ; {
		if start = f.grid.Next(start, pat, until); start >= until {
			return start
		}
		possible := exact.AddTime(f.grid.Res.AsOne(steps, start-before, capacity), before)
		if possible == start {
			return start
		}
		start = possible
	}
}

// probe sets what the grid must have around the pivot, the start of one of the steps, however they
// are expanded. The step before has held its nodes until then; the other steps start within the
// times that expansion leaves.
func (f *fitter) probe(p profile.Profile) {
	pat := &f.pattern
	pat.Clear()
	f.grid.Choose(pat, p, 1)
	pivot := pat.Pivot
	f.probeBeside(pat, p)
	low, high := p[pivot].Duration, f.longest[pivot]
	for k := pivot + 1; k < len(p) && high < exact.Forever; k++ {
		f.grid.ProbeAfter(pat, low, high, p[k])
		low, high = exact.AddTime(low, p[k].Duration), exact.AddTime(high, f.longest[k])
	}
	if pivot > 0 {
		low, high = p[pivot-1].Duration, f.longest[pivot-1]
		for k := pivot - 2; k >= 0 && high < exact.Forever; k-- {
			f.grid.ProbeBefore(pat, low, high, p[k])
			low, high = exact.AddTime(low, p[k].Duration), exact.AddTime(high, f.longest[k])
		}
	}
	if f.patterns = f.patterns[:0]; cap(f.patterns) < len(p) {
		f.patterns = make([]grid.Pattern, 0, len(p))
	}
	f.patterns = f.patterns[:len(p)]
	for i := range f.patterns {
		f.patterns[i].Clear()
	}
}

// probeBeside completes a pattern with the steps around its pivot.
func (f *fitter) probeBeside(pat *grid.Pattern, p profile.Profile) {
	i := pat.Pivot
	if i > 0 {
		f.grid.Probe(pat, -p[i-1].Duration, p[i-1])
		f.grid.Demand(pat, -p[i-1].Duration, p[i-1:i+1])
	} else {
		f.grid.Demand(pat, 0, p[:1])
	}
	f.grid.Probe(pat, 0, p[i])
	f.grid.Ready(pat)
}

// patternOf returns what the grid must have around the start of step i, however the steps are
// expanded.
func (f *fitter) patternOf(p profile.Profile, i int) *grid.Pattern {
	if i == f.pattern.Pivot {
		return &f.pattern
	}
	pat := &f.patterns[i]
	if pat.Pivot < 0 {
		f.grid.Only(pat, p, i)
		f.probeBeside(pat, p)
	}
	return pat
}
