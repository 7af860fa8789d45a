package paper

import (
	"github.com/evoslurm/evoslurm/planner/grid"
	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// FitOptions controls how Fit may delay and expand a job.
type FitOptions struct {
	NotBefore int64               // earliest start, seconds
	Limit     profile.ExpandLimit // for every step except the last; 0 means 1
	Compact   bool                // place again from the right, to start later and waste less
	Early     bool                // expand the first step, rather than delay it; not with Compact

	// Fixed means that the job already runs and holds the nodes of its first step (res does not
	// count them). It starts exactly at NotBefore.
	Fixed bool

	// MaxDuration, where it is longer than i and > 0 at i, bounds how long step i (from 0) holds
	// its nodes, in seconds, instead of Limit: a running step has used part of its allowance. A
	// value below the step's duration counts as the duration.
	MaxDuration []int64
}

// Fit delays and expands the requested EP p over the resource EP res so that at no time more than
// capacity nodes are in use (paper, section 4.2). It returns the earliest possible completion.
// Without Compact, every step also starts as early as in any valid placement, except the first,
// which is delayed rather than expanded (unless Fixed or Early). With Compact, the completion is the same,
// every step starts as late as possible, and no more node-seconds are wasted than without. It
// returns false if the job fits nowhere.
//
// Valid start times (C1 and C2) are closed under taking the earlier, or the later, of two, step by
// step. So there is one earliest solution, which Algorithm 2 finds by raising start times only as
// far as necessary. There is also one latest solution with the same completion, which compacting
// finds from the other side.
func Fit(res *timeline.Timeline, capacity int, p profile.Profile, o FitOptions) (profile.Placement, bool) {
	f := fitter{until: exact.Horizon + 1}
	if !f.fit(res, capacity, p, o) {
		return profile.Placement{}, false
	}
	return f.placement(p), true
}

// occupancy is the view of a resource EP that fitting needs.
type occupancy interface {
	EarliestFree(from int64, nodes int, duration int64, capacity int) int64
	FirstAtMost(from int64, limit int) int64
	FirstAbove(t0, t1 int64, limit int) int64
	LastAbove(t0, t1 int64, limit int) int64
}

// fitter is the scratch memory of Fit, for many fits in a row.
type fitter struct {
	grid     *grid.Grid     // of the resource EP, or nil
	minWaste bool           // with Compact: waste the least, see FitMinWaste
	until    int64          // the first step must start before this, or there is no fit
	asked    bool           // the steps keep their requested durations, from second start on
	start    int64          // of the first step, if asked
	starts   []int64        // otherwise, of every step
	longest  []int64        // how long every step may hold its nodes
	base     []int64        // starts before compacting
	order    []int          // steps, largest node counts first
	pattern  grid.Pattern   // for the grid: the pivot's pattern
	patterns []grid.Pattern // patterns of the other steps, made on demand
}

func (f *fitter) fit(res occupancy, capacity int, p profile.Profile, o FitOptions) bool {
	if len(p) == 0 || p.Peak() > capacity || o.NotBefore > exact.Horizon {
		return false
	}
	if f.asked = o.Limit <= 1 && len(o.MaxDuration) == 0 && !o.Fixed; !f.asked {
		f.asked = !f.prepare(p, o) && !o.Fixed
	}
	if f.asked {
		return f.asOne(res, capacity, p, o.NotBefore)
	}
	if !f.earliest(res, capacity, p, o) {
		return false
	}
	if o.Compact && len(p) > 1 {
		f.compact(res, capacity, p, o)
		if f.minWaste && f.wasted(p, f.starts) != (exact.Wide{}) {
			f.leastWaste(res, capacity, p, o)
		}
	}
	return true
}

// prepare sets starts and longest, and reports whether any step can be expanded.
func (f *fitter) prepare(p profile.Profile, o FitOptions) (expandable bool) {
	f.starts, f.longest = f.starts[:0], f.longest[:0]
	limit := max(o.Limit, 1)
	earliest := o.NotBefore
	for i, s := range p {
		longest := s.Duration
		if limit > 1 {
			longest = limit.Stretch(s.Duration)
		}
		if i < len(o.MaxDuration) && o.MaxDuration[i] > 0 {
			longest = max(o.MaxDuration[i], s.Duration)
		}
		expandable = expandable || longest > s.Duration && i+1 < len(p)
		f.starts = append(f.starts, earliest)
		earliest += s.Duration
		f.longest = append(f.longest, longest)
	}
	return expandable
}

// byNodes sets order.
func (f *fitter) byNodes(p profile.Profile) {
	f.order = f.order[:0]
	for i, s := range p {
		k := len(f.order)
		f.order = append(f.order, i)
		for ; k > 0 && p[f.order[k-1]].Nodes < s.Nodes; k-- {
			f.order[k] = f.order[k-1]
		}
		f.order[k] = i
	}
}

// asOne places a profile that cannot be expanded, so that its steps move together.
func (f *fitter) asOne(res occupancy, capacity int, p profile.Profile, notBefore int64) bool {
	if s, ok := res.(*timeline.Strip); ok {
		f.start = s.AsOne(capacity, p, notBefore)
		return f.start < f.until
	}
	f.starts = f.starts[:0] // relative to the start of the profile
	after := int64(0)
	for i := range p {
		f.starts = append(f.starts, after)
		after += p[i].Duration
	}
	if f.grid != nil {
		f.start = f.asOneOnGrid(capacity, p, notBefore)
	} else {
		f.start = f.asOneAnywhere(res, capacity, p, notBefore)
	}
	return f.start < f.until
}

// asOneAnywhere returns the first second ≥ start at which a profile fits whose steps move together.
// It tries the hardest step first; a step that does not fit moves all steps past the obstacle.
func (f *fitter) asOneAnywhere(res occupancy, capacity int, p profile.Profile, start int64) int64 {
	f.byNodes(p)
search:
	for start < f.until {
		for _, i := range f.order {
			s, limit := start+f.starts[i], capacity-p[i].Nodes
			if above := res.LastAbove(s, s+p[i].Duration, limit); above > s {
				if start = res.FirstAtMost(above, limit); start != exact.Forever {
					start -= f.starts[i]
				}
				continue search
			}
		}
		break
	}
	return start
}

// earliest is Algorithm 2 without recursion: starts[i] only ever rises, and only to a time before
// which step i cannot start.
func (f *fitter) earliest(res occupancy, capacity int, p profile.Profile, o FitOptions) bool {
	if f.grid != nil {
		f.probe(p)
	}
	if f.grid != nil && !o.Fixed && !f.fromPivot(res, capacity, p, o) {
		return false
	}
	if !f.place(0, res, capacity, p, o) {
		return false
	}
	if starts := f.starts; len(p) > 1 && !o.Fixed && !o.Early {
		starts[0] = starts[1] - p[0].Duration // lines 18–20: delayed, not expanded
	}
	return true
}

// place finds the earliest solution for the steps from first on, no earlier than
// starts.
func (f *fitter) place(first int, res occupancy, capacity int, p profile.Profile, o FitOptions) bool {
	starts := f.starts
	for i := first; i < len(p); {
		until := f.latest(i)
		start := f.earliestFree(res, capacity, p, i, until) // lines 4–7
		if start >= until || i == 0 && o.Fixed && start != o.NotBefore {
			return false
		}
		starts[i] = start
		if i > first {
			held := starts[i-1] + p[i-1].Duration
			previous := starts[i-1]
			if start-previous > f.longest[i-1] { // lines 9–11
				previous = start - f.longest[i-1]
			} else if start > held { // lines 12–13
				if above := res.LastAbove(held, start, capacity-p[i-1].Nodes); above > held {
					previous = above
				}
			}
			if previous > starts[i-1] {
				if i == 1 && o.Fixed {
					return false
				}
				starts[i-1] = previous
				i-- // line 16: place the previous step again, no earlier than that
				continue
			}
		}
		i++
		if i < len(p) {
			starts[i] = max(starts[i], start+p[i-1].Duration)
		}
	}
	return true
}

// latest returns before which second step i must start.
func (f *fitter) latest(i int) int64 {
	until := f.until
	if until <= exact.Horizon {
		for _, longest := range f.longest[:i] {
			until = exact.AddTime(until, longest)
		}
	}
	return min(until, exact.Horizon+1)
}

// earliestFree returns the first second ≥ starts[i] at which step i has its nodes. If there is none
// before until, it returns some second from until on.
func (f *fitter) earliestFree(res occupancy, capacity int, p profile.Profile, i int, until int64) int64 {
	if f.grid == nil {
		return res.EarliestFree(f.starts[i], p[i].Nodes, p[i].Duration, capacity)
	}
	return f.earliestFreeOnGrid(capacity, p, i, until)
}

// compact moves starts as late as the completion allows, from the last step to
// the first (paper, section 4.2, compacting), unless that wastes more.
func (f *fitter) compact(res occupancy, capacity int, p profile.Profile, o FitOptions) {
	f.base = append(f.base[:0], f.starts...)
	starts := f.starts
	last := len(p) - 1
	first := 0
	if o.Fixed {
		first = 1
	}
	for i := first; i < last; i++ {
		starts[i] = exact.Forever // no bound yet
	}
	// Step i holds its nodes during [starts[i], starts[i+1]); start times only
	// ever fall, and never below the base solution.
	for i := last - 1; i >= 0; {
		if i >= first {
			starts[i] = min(starts[i], starts[i+1]-p[i].Duration)
		}
		next, limit := starts[i+1], capacity-p[i].Nodes
		if above := res.FirstAbove(starts[i], next, limit); above != exact.Forever {
			if next = above; above == starts[i] { // step i cannot hold its nodes beyond
				next = inUseSince(res, f.base[i], above, limit)
			}
		} else if next-starts[i] > f.longest[i] {
			next = starts[i] + f.longest[i]
		}
		if next < starts[i+1] {
			starts[i+1] = next
			i++
			continue
		}
		i--
	}
	if f.wasted(p, f.base).Less(f.wasted(p, starts)) {
		copy(starts, f.base)
	}
}

// inUseSince returns since when, after second free, more than limit nodes are in use up to second t. That may be years before.
func inUseSince(res occupancy, free, t int64, limit int) int64 {
	for step := int64(1); step > 0; {
		if before := t - step; before > free && res.FirstAtMost(before, limit) > t {
			t, step = before, 2*step
		} else {
			step /= 2
		}
	}
	return t
}

// wasted returns the node-seconds held beyond the steps' durations.
func (f *fitter) wasted(p profile.Profile, starts []int64) (w exact.Wide) {
	for i := 0; i+1 < len(p); i++ {
		w.Add(int64(p[i].Nodes), starts[i+1]-starts[i]-p[i].Duration)
	}
	return w
}

// end returns the completion time of the last fit.
func (f *fitter) end(p profile.Profile) int64 {
	if f.asked {
		return f.start + p.Duration()
	}
	last := len(p) - 1
	return f.starts[last] + p[last].Duration
}

func (f *fitter) placement(p profile.Profile) profile.Placement {
	return f.placementIn(p, make(profile.Profile, len(p)))
}

// placementIn is placement with the memory for its steps.
func (f *fitter) placementIn(p, steps profile.Profile) profile.Placement {
	copy(steps, p)
	if f.asked {
		return profile.Placement{Start: f.start, Steps: steps}
	}
	for i := range len(p) - 1 {
		steps[i].Duration = f.starts[i+1] - f.starts[i]
	}
	return profile.Placement{Start: f.starts[0], Steps: steps}
}
