package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// plan is a plan over time: jobs are stacked in list order, each as high as its nodes. Nodes held
// but not used are pale.
type plan struct {
	nodes int
	busy  []planner.Span
	bars  []bar
}

// bar is a job's nodes during a period without any change.
type bar struct {
	start, end  int64
	below, used int // nodes below it, and nodes used by it
	held        int
	job         int
}

func newPlan(p planner.Problem, schedule planner.Schedule) plan {
	g := plan{nodes: p.Nodes, busy: p.Timeline().Steps()}
	var times []int64
	last := int64(0)
	uses := make([][]planner.Span, len(schedule)) // held and used nodes change at these
	for i, placed := range schedule {
		times = append(times, placed.Boundaries()...)
		uses[i] = used(p.Jobs[i].Profile, placed)
		for _, u := range uses[i] {
			times = append(times, u.Start, u.End)
		}
		last = max(last, placed.End())
	}
	g.busy = slices.DeleteFunc(g.busy, func(b planner.Span) bool { return b.Start >= last })
	for k, b := range g.busy {
		g.busy[k].End = min(b.End, last)
		times = append(times, b.Start, g.busy[k].End)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	// Every job walks along the times that lie within it.
	below := make([]int, len(times))
	for _, b := range g.busy {
		for k := index(times, b.Start); k < len(times) && times[k] < b.End; k++ {
			below[k] += b.Nodes
		}
	}
	for i, placed := range schedule {
		for k := index(times, placed.Start); times[k] < placed.End(); k++ {
			b := bar{start: times[k], end: times[k+1], below: below[k], held: placed.At(times[k]), job: i}
			for _, u := range uses[i] {
				if u.Start <= b.start && b.start < u.End {
					b.used = u.Nodes
				}
			}
			below[k] += b.held
			g.bars = append(g.bars, b)
		}
	}
	return g
}

func index(times []int64, t int64) int {
	k, _ := slices.BinarySearch(times, t)
	return k
}

// used returns when a placed job computes: every step from its start on or, in a rigid placement,
// the steps one after the other.
func used(p planner.Profile, placed planner.Placement) []planner.Span {
	spans := make([]planner.Span, len(p))
	at := placed.Start
	for k, s := range p {
		spans[k] = planner.Span{Start: at, End: at + s.Duration, Nodes: s.Nodes}
		if len(placed.Steps) == len(p) {
			at += placed.Steps[k].Duration
		} else {
			at += s.Duration
		}
	}
	return spans
}

// draw draws the bars.
func (g plan) draw(s *svg, a chartArea) {
	fill := func(start, end int64, low, high int, colour string) {
		if high > low {
			x, y := a.atX(hours(start)), a.atY(float64(high))
			s.rect(x, y, a.atX(hours(end))-x, a.atY(float64(low))-y, colour)
		}
	}
	for _, b := range g.busy {
		fill(b.Start, b.End, 0, b.Nodes, "#a0a0a0")
	}
	for _, b := range g.bars {
		fill(b.start, b.end, b.below, b.below+b.used, jobColour(b.job, 1))
		fill(b.start, b.end, b.below+b.used, b.below+b.held, jobColour(b.job, .3))
	}
}

func hours(seconds int64) float64 { return float64(seconds) / 3600 }

// jobColour returns colours that differ strongly between neighbours in the list.
func jobColour(job int, strength float64) string {
	const golden = 0.61803398875
	_, hue := math.Modf(float64(job) * golden)
	channel := func(shift float64) uint8 {
		_, h := math.Modf(hue + shift)
		v := .55 + .33*math.Cos(2*math.Pi*h)
		if job%2 == 1 {
			v *= .82
		}
		return uint8(255 * (1 - strength*(1-v)))
	}
	return fmt.Sprintf("#%02x%02x%02x", channel(0), channel(2./3), channel(1./3))
}
