package picture

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/evoslurm/evoslurm/planner"
)

// gantt is a plan over time: jobs lie on each other in list order, each as high
// as the nodes it holds. What a job holds but does not use is pale.
type gantt struct {
	nodes int
	busy  []planner.Span
	bars  []bar
}

// bar is a job's nodes during a stretch in which nobody's count changes.
type bar struct {
	start, end  int64
	below, used int // nodes under it, and used by it
	held        int
	job         int
}

func newGantt(p planner.Problem, plan planner.Schedule) gantt {
	g := gantt{nodes: p.Nodes, busy: p.Timeline().Steps()}
	var times []int64
	last := int64(0)
	uses := make([][]planner.Span, len(plan)) // held and used nodes change at these
	for i, placed := range plan {
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
	for i, placed := range plan {
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

// used is when a placed job computes: every step from its start on; for a rigid
// placement, the steps one after the other.
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

// Plot draws the bars.
func (g gantt) Plot(c draw.Canvas, plt *plot.Plot) {
	x, y := plt.Transforms(&c)
	fill := func(start, end int64, low, high int, col color.Color) {
		if high <= low {
			return
		}
		x0, x1 := x(hours(start)), x(hours(end))
		y0, y1 := y(float64(low)), y(float64(high))
		c.FillPolygon(col, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
	}
	for _, b := range g.busy {
		fill(b.Start, b.End, 0, b.Nodes, color.Gray{160})
	}
	for _, b := range g.bars {
		fill(b.start, b.end, b.below, b.below+b.used, jobColour(b.job, 1))
		fill(b.start, b.end, b.below+b.used, b.below+b.held, jobColour(b.job, .3))
	}
}

func hours(seconds int64) float64 { return float64(seconds) / 3600 }

// jobColour gives neighbours in the list colours far apart.
func jobColour(job int, strength float64) color.Color {
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
	return color.RGBA{channel(0), channel(2. / 3), channel(1. / 3), 255}
}
