package paper

import (
	"math"
	"math/bits"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// FitMinWaste is Fit with the least waste: of all placements that complete as early as possible, it
// returns one that wastes the fewest node-seconds and, of those, the one that starts latest. The
// paper leaves this open: its compacting is greedy and "not always optimal for resource waste"
// (section 4.2). FitMinWaste ignores o.Compact.
//
// The waste is linear in the steps' start times. Three conditions bind the start of a step to that
// of the next: the duration, the expand limit, and that both lie in the same stretch of time with
// enough free nodes for the step. The start of the last step is known. From there to the first
// step, FitMinWaste computes the least waste as a function of a step's start: piecewise linear on
// the whole seconds, exact.
//
// Such a function is convex between two concave kinks. The step before adds concave kinks only at
// the ends of the free stretches, and one piece for every convex part. So with m steps and g
// changes of free nodes, the functions have O(m²g) pieces, and it takes O(m³g log(mg)) at worst. If
// compacting wastes nothing, as usual, it costs one Fit.
//
// If waste may exceed 2^60 node-seconds (a million nodes for 36,000 years), it is Fit with Compact.
func FitMinWaste(res *timeline.Timeline, capacity int, p profile.Profile, o FitOptions) (profile.Placement, bool) {
	o.Compact = true
	f := fitter{until: exact.Horizon + 1, minWaste: true}
	if !f.fit(res, capacity, p, o) {
		return profile.Placement{}, false
	}
	return f.placement(p), true
}

// leastWaste turns compacted starts into those with the least waste.
func (f *fitter) leastWaste(res occupancy, capacity int, p profile.Profile, o FitOptions) {
	starts, earliest := f.starts, f.base // the first step is delayed there, as it wastes nothing
	last := len(p) - 1
	if hi, lo := bits.Mul64(uint64(p.Peak()), uint64(earliest[last]-earliest[0])); hi > 0 || lo > 1<<60 {
		return
	}
	w := wasteFunctions(res, capacity, p, f.longest, earliest)
	if o.Fixed {
		starts[0] = o.NotBefore
	} else {
		starts[0] = w[0].argmin(0, math.MinInt64, math.MaxInt64)
	}
	for i := 0; i < last; i++ {
		until := res.FirstAbove(starts[i], earliest[last]+1, capacity-p[i].Nodes)
		from := starts[i] + p[i].Duration
		to := min(until, exact.AddTime(starts[i], f.longest[i]))
		starts[i+1] = w[i+1].argmin(int64(p[i].Nodes), from, to)
	}
}

// piece is a linear function on the whole numbers first … last.
type piece struct {
	first, last int64 // seconds
	value       int64 // at first, node-seconds
	slope       int64 // nodes
}

func (p piece) at(s int64) int64 { return p.value + p.slope*(s-p.first) }

func (p piece) cut(first, last int64) piece { return piece{first, last, p.at(first), p.slope} }

// pieces is a piecewise linear function: ascending, disjoint, undefined in between.
type pieces []piece

// wasteFunctions returns, for every step i, the least waste of the steps i … as a function of its
// start, given how long each may hold its nodes. earliest bounds the starts from below and is the
// start of the last step.
func wasteFunctions(res occupancy, capacity int, p profile.Profile, longest, earliest []int64) []pieces {
	last := len(p) - 1
	w := make([]pieces, len(p))
	w[last] = pieces{{earliest[last], earliest[last], 0, 0}}
	for i := last - 1; i >= 0; i-- {
		nodes, duration := p[i].Nodes, p[i].Duration
		next := w[i+1]
		end := next[len(next)-1].last // no step i+1 starts later
		for from := earliest[i]; ; {
			from = res.EarliestFree(from, nodes, duration, capacity)
			if from > end-duration {
				break
			}
			until := min(res.FirstAbove(from, end, capacity-nodes), end)
			w[i] = append(w[i], next.before(int64(nodes), duration, longest[i], from, until)...)
			if until == end {
				break
			}
			from = until
		}
	}
	return w
}

// before returns the least waste from a step on that starts at s and holds nodes until the next
// step starts, for duration to longest seconds and within the free stretch [from, until]: min over
// t of nodes × (t − s − duration) + f(t).
func (f pieces) before(nodes, duration, longest, from, until int64) pieces {
	var parts []pieces
	add := func(p piece) {
		first, last := max(p.first, from), min(p.last, until-duration)
		if first <= last {
			parts = append(parts, pieces{p.cut(first, last)})
		}
	}
	for _, p := range f {
		if p.first > until {
			break
		}
		p.last = min(p.last, until)
		slope := p.slope + nodes // of nodes × t + f(t)
		// The best that a piece offers to s is its start or the first possible t; if it falls, its
		// end or the last t.
		best, moving := p.first, duration
		if slope < 0 {
			best, moving = p.last, longest
		}
		earliest := int64(math.MinInt64)
		if longest != exact.Forever {
			earliest = best - longest
		}
		earliest = max(earliest, from)
		if earliest <= best-duration {
			waste := p.at(best) + nodes*(best-earliest-duration)
			add(piece{earliest, best - duration, waste, -nodes})
		}
		if moving != exact.Forever && p.first < p.last {
			add(piece{p.first - moving, p.last - moving, p.value + nodes*(moving-duration), p.slope})
		}
	}
	return envelope(parts)
}

// envelope returns the minimum of functions, by halving.
func envelope(parts []pieces) pieces {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	half := len(parts) / 2
	return least(envelope(parts[:half]), envelope(parts[half:]))
}

// least returns the minimum of two functions. O(pieces).
func least(f, g pieces) pieces {
	out := make(pieces, 0, len(f)+len(g)+2)
	add := func(p piece) {
		if n := len(out); n > 0 {
			before := &out[n-1]
			if before.last+1 == p.first && before.slope == p.slope && before.at(p.first) == p.value {
				before.last = p.last
				return
			}
			if before.first == before.last && before.last+1 == p.first && before.value == p.at(before.first) {
				before.last, before.slope = p.last, p.slope // a point in line with the next piece
				return
			}
		}
		out = append(out, p)
	}
	for len(f) > 0 && len(g) > 0 {
		if f[0].first > g[0].first {
			f, g = g, f
		}
		a, b := f[0], g[0]
		if a.first < b.first { // only a
			end := min(a.last, b.first-1)
			add(a.cut(a.first, end))
			f = f.after(end)
			continue
		}
		end := min(a.last, b.last)
		if a.value > b.value || a.value == b.value && a.slope > b.slope {
			a, b = b, a
		}
		// a is smaller at first; b may fall below it later.
		first := a.first
		if closing := a.slope - b.slope; closing > 0 {
			if ahead := (b.value - a.value) / closing; ahead < end-first {
				add(a.cut(first, first+ahead))
				add(b.cut(first+ahead+1, end))
				f, g = f.after(end), g.after(end)
				continue
			}
		}
		add(a.cut(first, end))
		f, g = f.after(end), g.after(end)
	}
	for _, p := range f {
		add(p)
	}
	for _, p := range g {
		add(p)
	}
	return out
}

// after returns the function without the part up to s. It may write to f.
func (f pieces) after(s int64) pieces {
	if f[0].last <= s {
		return f[1:]
	}
	if f[0].first <= s {
		f[0] = f[0].cut(s+1, f[0].last)
	}
	return f
}

// argmin returns the latest t in from … to with the least nodes × t + f(t).
func (f pieces) argmin(nodes, from, to int64) int64 {
	best, least := from, int64(math.MaxInt64)
	origin := f[0].first // keeps the products small
	for _, p := range f {
		first, last := max(p.first, from), min(p.last, to)
		if first > last {
			continue
		}
		for _, t := range [2]int64{first, last} {
			if v := p.at(t) + nodes*(t-origin); v <= least {
				best, least = t, v
			}
		}
	}
	return best
}
