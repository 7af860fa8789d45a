package search

import (
	"math"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// shape is a job as the search sees it: never expanded, so its start is all
// there is to choose.
type shape struct {
	steps    []shapeStep
	peak     int   // index of the step with the most nodes
	duration int64 // seconds
	submit   int64
	area     float64 // node-seconds
}

type shapeStep struct {
	start, end int64 // seconds from the job's start
	nodes      int64
}

func newShape(j paper.Job) shape {
	s := shape{submit: j.Submit, area: j.Profile.WideArea().Float(), steps: make([]shapeStep, len(j.Profile))}
	for i, step := range j.Profile {
		s.steps[i] = shapeStep{s.duration, s.duration + step.Duration, int64(step.Nodes)}
		s.duration += step.Duration
		if s.steps[i].nodes > s.steps[s.peak].nodes {
			s.peak = i
		}
	}
	return s
}

// mirrored returns the shape with time running backwards.
func (s shape) mirrored() shape {
	last := len(s.steps) - 1
	m := s
	m.peak = last - s.peak
	m.steps = make([]shapeStep, len(s.steps))
	for i, step := range s.steps {
		m.steps[last-i] = shapeStep{s.duration - step.end, s.duration - step.start, step.nodes}
	}
	return m
}

// gap is a stretch of time with a constant number of free nodes; it lasts until
// the next gap of the slice.
type gap struct {
	start int64 // seconds
	free  int64 // nodes; below 0 where others use more than there is
}

// never is later than any plan may reach.
const never = 2 * exact.Horizon

// openGaps returns what busy leaves free of capacity nodes. The first gap starts
// before any plan does; two sentinels without end stop every scan.
func openGaps(busy *timeline.Timeline, capacity int) []gap {
	gaps := []gap{{-2 * exact.Horizon, int64(capacity)}}
	for _, s := range busy.Steps() {
		if last := len(gaps) - 1; gaps[last].start == s.Start {
			gaps = gaps[:last]
		}
		gaps = append(gaps, gap{s.Start, int64(capacity - s.Nodes)})
		if s.End < never {
			gaps = append(gaps, gap{s.End, int64(capacity)})
		}
	}
	return append(gaps, gap{never, math.MaxInt64}, gap{math.MaxInt64, math.MaxInt64})
}

// place returns the first start ≥ from at which the shape fits; above horizon if
// there is none. Only the widest step looks for room on its own; where another
// step meets a gap that is too narrow, the shape moves beyond it. O(gaps) in
// practice, O(gaps × steps) at worst.
func place(gaps []gap, j *shape, from int64) int64 {
	peak := &j.steps[j.peak]
	length := peak.end - peak.start
	k := 0
	start := from
search:
	for {
		t := start + peak.start
		for gaps[k+1].start <= t {
			k++
		}
		e := k // the peak holds gaps k … e
		for {
			if gaps[e].free < peak.nodes {
				e++
				t = gaps[e].start
				k = e
			} else if gaps[e+1].start >= t+length {
				break
			} else {
				e++
			}
		}
		start = t - peak.start
		if t >= never {
			return never
		}
		x := e
		for i := j.peak + 1; i < len(j.steps); i++ {
			step := &j.steps[i]
			if gaps[x+1].start <= start+step.start {
				x++
			}
			end := start + step.end
			for {
				if gaps[x].free < step.nodes {
					for gaps[x].free < step.nodes {
						x++
					}
					start = gaps[x].start - step.start
					continue search
				}
				if gaps[x+1].start >= end {
					break
				}
				x++
			}
		}
		x = k
		for i := j.peak - 1; i >= 0; i-- {
			step := &j.steps[i]
			if gaps[x].start >= start+step.end {
				x--
			}
			begin := start + step.start
			for {
				if gaps[x].free < step.nodes {
					start = gaps[x+1].start - step.start
					continue search
				}
				if gaps[x].start <= begin {
					break
				}
				x--
			}
		}
		return start
	}
}

// occupy writes into out what the shape, started at start, leaves of gaps. What
// lies before keep is cut off.
func occupy(out, gaps []gap, j *shape, start, keep int64) []gap {
	first := 0
	for gaps[first+1].start <= keep {
		first++
	}
	k := first
	for gaps[k+1].start <= start {
		k++
	}
	out = append(out[:0], gaps[first:k]...)
	if gaps[k].start < start && (k > first || keep < start) {
		out = append(out, gaps[k])
	}
	t := start
	for i := range j.steps {
		step := &j.steps[i]
		end := start + step.end
		for {
			out = append(out, gap{t, gaps[k].free - step.nodes})
			next := gaps[k+1].start
			if next >= end {
				t = end
				if next == end {
					k++
				}
				break
			}
			k++
			t = next
		}
	}
	if gaps[k].start < t {
		out = append(out, gap{t, gaps[k].free})
		k++
	}
	return append(out, gaps[k:]...)
}
