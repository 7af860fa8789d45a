package planner

// horizon is the last second at which a plan may end: beyond it, sums of times
// could overflow.
const horizon int64 = 1 << 60

// Placement is a scheduled EP (paper, section 3.1): a requested EP, delayed to
// Start and with its steps expanded.
type Placement struct {
	Start int64   // seconds
	Steps Profile // with the durations for which nodes are held
}

// End is the completion time in seconds.
func (p Placement) End() int64 { return addTime(p.Start, p.Steps.Duration()) }

// Boundaries are the start of every step and the end: len(Steps)+1 seconds.
func (p Placement) Boundaries() []int64 {
	b := make([]int64, 0, len(p.Steps)+1)
	at := p.Start
	for _, s := range p.Steps {
		b = append(b, at)
		at += s.Duration
	}
	return append(b, at)
}

// At is the number of nodes held at second t.
func (p Placement) At(t int64) int { return p.Steps.At(t - p.Start) }

// FitOptions say how Fit may delay and expand a job.
type FitOptions struct {
	NotBefore int64       // earliest start, seconds
	Limit     ExpandLimit // of every step but the last; 0 is 1
	Compact   bool        // place again from the right, to start later and waste less

	// Fixed: the job runs already and holds the nodes of its first step (res
	// does not count them). It starts at NotBefore exactly.
	Fixed bool

	// MaxDuration, where longer than i and > 0 at i, bounds the time for which
	// step i (from 0) holds its nodes, in seconds, in place of Limit: a running
	// step has used part of its allowance. Below the step's duration it counts
	// as the duration.
	MaxDuration []int64
}

// Fit delays and expands the requested EP p over the resource EP res so that at
// no time more than capacity nodes are in use (paper, section 4.2). It gives the
// earliest completion there is; without Compact every step also starts as early
// as in any valid placement, but for the first, which is delayed rather than
// expanded (unless Fixed). With Compact the completion is the same, every step
// starts as late as it then can, and no more node-seconds are wasted than
// without. It is false if the job fits nowhere.
//
// The steps' start times that keep C1 and C2 are closed under taking the
// earlier (later) of two, step by step. So there is one earliest solution, which
// Algorithm 2 finds by raising start times only as far as they must, and one
// latest solution with the same completion, which compacting finds from the
// other side.
func Fit(res *Timeline, capacity int, p Profile, o FitOptions) (Placement, bool) {
	var f fitter
	if !f.fit(res, capacity, p, o) {
		return Placement{}, false
	}
	return f.placement(p), true
}

// fitter is the scratch memory of Fit, for many fits in a row.
type fitter struct {
	starts  []int64 // of every step
	longest []int64 // for which every step may hold its nodes
	base    []int64 // starts before compacting
}

func (f *fitter) fit(res *Timeline, capacity int, p Profile, o FitOptions) bool {
	if len(p) == 0 || p.Peak() > capacity || o.NotBefore > horizon {
		return false
	}
	f.prepare(p, o)
	if !f.earliest(res, capacity, p, o) {
		return false
	}
	if o.Compact && len(p) > 1 {
		f.compact(res, capacity, p, o)
	}
	return true
}

func (f *fitter) prepare(p Profile, o FitOptions) {
	f.starts, f.longest = f.starts[:0], f.longest[:0]
	limit := max(o.Limit, 1)
	for i, s := range p {
		longest := limit.Stretch(s.Duration)
		if i < len(o.MaxDuration) && o.MaxDuration[i] > 0 {
			longest = max(o.MaxDuration[i], s.Duration)
		}
		f.starts = append(f.starts, o.NotBefore)
		f.longest = append(f.longest, longest)
	}
}

// earliest is Algorithm 2 without recursion: starts[i] only ever rises, and only
// to a time before which step i cannot start.
func (f *fitter) earliest(res *Timeline, capacity int, p Profile, o FitOptions) bool {
	starts := f.starts
	for i := 0; i < len(p); {
		start := res.EarliestFree(starts[i], p[i].Nodes, p[i].Duration, capacity) // lines 4–7
		if start > horizon || i == 0 && o.Fixed && start != o.NotBefore {
			return false
		}
		starts[i] = start
		if i > 0 {
			held := starts[i-1] + p[i-1].Duration
			previous := starts[i-1]
			if start-previous > f.longest[i-1] { // lines 9–11
				previous = start - f.longest[i-1]
			} else if start > held { // lines 12–13
				if above := res.lastAbove(held, start, capacity-p[i-1].Nodes); above > held {
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
	if len(p) > 1 && !o.Fixed {
		starts[0] = starts[1] - p[0].Duration // lines 18–20: delayed, not expanded
	}
	return true
}

// compact moves starts as late as the completion allows, from the last step to
// the first (paper, section 4.2, compacting), unless that wastes more.
func (f *fitter) compact(res *Timeline, capacity int, p Profile, o FitOptions) {
	f.base = append(f.base[:0], f.starts...)
	starts := f.starts
	last := len(p) - 1
	first := 0
	if o.Fixed {
		first = 1
	}
	for i := first; i < last; i++ {
		starts[i] = Forever // no bound yet
	}
	// Step i holds its nodes during [starts[i], starts[i+1]); start times only
	// ever fall, and never below the base solution.
	for i := last - 1; i >= 0; {
		if i >= first {
			starts[i] = min(starts[i], starts[i+1]-p[i].Duration)
		}
		next := starts[i+1]
		if above := res.firstAbove(starts[i], next, capacity-p[i].Nodes); above != Forever {
			next = above // step i cannot hold its nodes beyond
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
	if f.wasted(p, f.base).less(f.wasted(p, starts)) {
		copy(starts, f.base)
	}
}

// wasted is the node-seconds held beyond the steps' durations.
func (f *fitter) wasted(p Profile, starts []int64) (w wide) {
	for i := 0; i+1 < len(p); i++ {
		w.add(p[i].Nodes, starts[i+1]-starts[i]-p[i].Duration)
	}
	return w
}

func (f *fitter) placement(p Profile) Placement {
	steps := make(Profile, len(p))
	last := len(p) - 1
	for i, s := range p {
		steps[i] = s
		if i < last {
			steps[i].Duration = f.starts[i+1] - f.starts[i]
		}
	}
	return Placement{Start: f.starts[0], Steps: steps}
}
