package report

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

// Measures of a picture, in pixels.
const (
	pictureWidth = 980
	boxHeight    = 340
	planHeight   = 150
	margin       = 15
	left, bottom = 50, 22 // of a chart, for its axes
	top          = 24     // of a chart, for its title
)

// Formats returns what Compare can write, named as files end.
func Formats() []string { return []string{"svg", "html"} }

// Compare draws a comparison. It draws box plots of the effective utilisation, the makespan, the
// mean completion, and the waste over all workloads, if there are several, and the plans of one
// workload (from 0), a Gantt chart for every strategy. format is one of Formats.
func Compare(out io.Writer, c sim.Comparison, workload int, format string) error {
	if workload < 0 || workload >= len(c.Workloads) {
		return fmt.Errorf("there is no workload %d", workload+1)
	}
	if len(c.Strategies) == 0 {
		return errors.New("there is no strategy")
	}
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("no picture format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	var body svg
	y := 0.
	if len(c.Workloads) > 1 {
		for i, b := range distributions(c) {
			b.draw(&body, chartArea{x: float64(i%2) * pictureWidth / 2, y: y + float64(i/2)*boxHeight, width: pictureWidth / 2, height: boxHeight})
		}
		y += 2 * boxHeight
	}
	drawPlans(&body, c, workload, y)
	y += planHeight * float64(len(c.Strategies))
	return body.page(out, y, "Strategies compared", format)
}

// svg collects shapes.
type svg struct{ bytes.Buffer }

// page writes the shapes as a picture of that height.
func (s *svg) page(out io.Writer, height float64, title, format string) error {
	drawing := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %g" width="%d" height="%g" font-family="sans-serif" font-size="11">`+
		"\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n", pictureWidth, height, pictureWidth, height, s.String())
	if format == "html" {
		drawing = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" + title + "</title></head>\n<body>\n" + drawing + "</body>\n</html>\n"
	}
	_, err := io.WriteString(out, drawing)
	return err
}

func (s *svg) rect(x, y, width, height float64, fill string) {
	fmt.Fprintf(s, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y, width, height, fill)
}

func (s *svg) line(x0, y0, x1, y1 float64, stroke string) {
	fmt.Fprintf(s, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n", x0, y0, x1, y1, stroke)
}

// text writes words at a point; anchor is start, middle, or end; more is further attributes.
func (s *svg) text(x, y float64, anchor, words, more string) {
	fmt.Fprintf(s, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more, html.EscapeString(words))
}

// chartArea is the position of a chart, with its title and axes, and the scale of its values.
type chartArea struct {
	x, y, width, height  float64
	minX, maxX, low, top float64
	below                float64 // pixels for the labels of the x axis
}

func (a chartArea) atX(v float64) float64 {
	return a.x + left + (v-a.minX)/(a.maxX-a.minX)*(a.width-left-margin)
}

func (a chartArea) atY(v float64) float64 {
	floor := a.y + a.height - bottom - a.below
	return floor - (v-a.low)/(a.top-a.low)*(floor-a.y-top)
}

// frame draws a chart's title, and its y axis with a grid.
func (a chartArea) frame(s *svg, title string) {
	s.text(a.x+left, a.y+top-8, "start", title, ` font-size="13"`)
	for _, v := range ticks(a.low, a.top, 5) {
		s.line(a.atX(a.minX), a.atY(v), a.atX(a.maxX), a.atY(v), "#ddd")
		s.text(a.x+left-5, a.atY(v)+4, "end", fmt.Sprintf("%g", v), "")
	}
	s.line(a.atX(a.minX), a.atY(a.low), a.atX(a.maxX), a.atY(a.low), "black")
	s.line(a.atX(a.minX), a.atY(a.low), a.atX(a.minX), a.atY(a.top), "black")
}

// ticks returns round values from low to high, about as many as wanted.
func ticks(low, high float64, wanted int) (values []float64) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(wanted))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= float64(wanted) {
			step *= factor
			break
		}
	}
	for k := math.Ceil(low / step); k*step <= high; k++ {
		values = append(values, math.Round(k*step*1e9)/1e9)
	}
	return values
}

// boxPlot shows a figure of every strategy over all workloads.
type boxPlot struct {
	title string
	names []string
	boxes []box
}

// box is a distribution: its quartiles, the farthest values within 1.5 times their distance, and those beyond.
type box struct {
	first, median, third float64
	low, high            float64
	beyond               []float64
}

func newBox(values []float64) box {
	v := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		place := q * float64(len(v)-1)
		k := int(place)
		return v[k] + (place-float64(k))*(v[min(k+1, len(v)-1)]-v[k])
	}
	b := box{first: at(.25), median: at(.5), third: at(.75)}
	b.low, b.high = b.first, b.third
	reach := 1.5 * (b.third - b.first)
	for _, x := range v {
		if x < b.first-reach || x > b.third+reach {
			b.beyond = append(b.beyond, x)
		} else {
			b.low, b.high = min(b.low, x), max(b.high, x)
		}
	}
	return b
}

// distributions returns four box plots.
func distributions(c sim.Comparison) (plots []boxPlot) {
	for _, d := range []struct {
		title string
		value func(sim.Outcome) float64
	}{
		{"Effective utilisation (%)", func(o sim.Outcome) float64 { return o.Metrics.EffectiveUtilisation }},
		{"Makespan (proven bound = 1)", func(o sim.Outcome) float64 { return float64(o.Metrics.Makespan) / max(o.Bound, 1) }},
		{"Mean completion (h)", func(o sim.Outcome) float64 { return o.Metrics.AvgCompletion / 3600 }},
		{"Waste (%)", func(o sim.Outcome) float64 { return o.Metrics.Waste }},
	} {
		p := boxPlot{title: d.title}
		for s, strategy := range c.Strategies {
			values := make([]float64, len(c.Workloads))
			for w := range values {
				values[w] = d.value(c.Outcomes[w][s])
			}
			p.names, p.boxes = append(p.names, strategy.Name()), append(p.boxes, newBox(values))
		}
		plots = append(plots, p)
	}
	return plots
}

func (p boxPlot) draw(s *svg, a chartArea) {
	a.below, a.minX, a.maxX = 50, -.5, float64(len(p.boxes))-.5
	a.low, a.top = math.Inf(1), math.Inf(-1)
	for _, b := range p.boxes {
		for _, v := range append([]float64{b.low, b.high}, b.beyond...) {
			a.low, a.top = min(a.low, v), max(a.top, v)
		}
	}
	if a.low == a.top {
		a.low, a.top = a.low-.5, a.top+.5
	}
	a.frame(s, p.title)
	for i, b := range p.boxes {
		x := a.atX(float64(i))
		half := min(10, .35*(a.atX(1)-a.atX(0)))
		s.line(x, a.atY(b.low), x, a.atY(b.high), "black")
		fmt.Fprintf(s, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"black\"/>\n",
			x-half, a.atY(b.third), 2*half, a.atY(b.first)-a.atY(b.third), jobColour(i, .5))
		s.line(x-half, a.atY(b.median), x+half, a.atY(b.median), "black")
		for _, v := range b.beyond {
			fmt.Fprintf(s, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2\" fill=\"none\" stroke=\"black\"/>\n", x, a.atY(v))
		}
		y := a.atY(a.low) + 10
		s.text(x+3, y, "end", p.names[i], fmt.Sprintf(" transform=\"rotate(-35 %.2f %.2f)\"", x+3, y))
	}
}

// drawPlans draws the plans of one workload, on the same scales.
func drawPlans(s *svg, c sim.Comparison, workload int, y float64) {
	problem := c.Workloads[workload]
	latest := int64(1)
	for _, o := range c.Outcomes[workload] {
		latest = max(latest, o.Metrics.Makespan)
	}
	for i, strategy := range c.Strategies {
		o := c.Outcomes[workload][i]
		a := chartArea{x: 0, y: y + float64(i)*planHeight, width: pictureWidth, height: planHeight, maxX: hours(latest), top: float64(problem.Nodes)}
		a.frame(s, fmt.Sprintf("%s: %.1f h, effective utilisation %.1f %%, waste %.1f %% (nodes over hours)",
			strategy.Name(), hours(o.Metrics.Makespan), o.Metrics.EffectiveUtilisation, o.Metrics.Waste))
		for _, v := range ticks(0, a.maxX, 10) {
			s.text(a.atX(v), a.atY(0)+14, "middle", fmt.Sprintf("%g", v), "")
		}
		newPlan(problem, o.Schedule).draw(s, a)
	}
}
