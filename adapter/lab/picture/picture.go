package picture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

const (
	width      = 26 * vg.Centimeter
	boxHeight  = 9 * vg.Centimeter
	rowHeight  = 4 * vg.Centimeter
	pixelsInch = 120
)

// Formats are what Compare can write, named as files end.
func Formats() []string { return []string{"svg", "png", "html"} }

// Compare draws a comparison: box plots of the effective utilisation, the
// makespan, the mean completion and the waste over all workloads, if there are
// several, and the plans of one workload (from 0), a Gantt chart for every
// strategy. format is one of Formats.
func Compare(out io.Writer, c sim.Comparison, workload int, format string) error {
	if workload < 0 || workload >= len(c.Workloads) {
		return fmt.Errorf("there is no workload %d", workload+1)
	}
	if len(c.Strategies) == 0 {
		return errors.New("there is no strategy")
	}
	var boxes, charts []*plot.Plot
	if len(c.Workloads) > 1 {
		var err error
		if boxes, err = distributions(c); err != nil {
			return err
		}
	}
	charts = gantts(c, workload)
	height := rowHeight * vg.Length(len(charts))
	if len(boxes) > 0 {
		height += 2 * boxHeight
	}
	switch format {
	case "png":
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pixelsInch))
		paint(draw.New(canvas), boxes, charts)
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(out)
		return err
	case "svg", "html":
		canvas := vgsvg.New(width, height)
		paint(draw.New(canvas), boxes, charts)
		var svg bytes.Buffer
		if _, err := canvas.WriteTo(&svg); err != nil {
			return err
		}
		if format == "html" {
			return page(out, svg.String())
		}
		_, err := svg.WriteTo(out)
		return err
	}
	return fmt.Errorf("no picture format %q: there are %s", format, strings.Join(Formats(), ", "))
}

func page(out io.Writer, svg string) error {
	_, drawing, found := strings.Cut(svg, "<svg")
	if !found {
		return errors.New("the drawing is no SVG")
	}
	_, err := fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Strategies compared</title></head>\n<body>\n<svg%s\n</body>\n</html>\n", drawing)
	return err
}

// paint lays the box plots out in two rows, the charts below.
func paint(c draw.Canvas, boxes, charts []*plot.Plot) {
	const margin = 4 * vg.Millimeter
	at := c.Max.Y
	row := func(height vg.Length) draw.Canvas {
		at -= height
		return draw.Crop(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Min.X, Y: at}, Max: vg.Point{X: c.Max.X, Y: at + height}}}, margin, -margin, margin, -margin)
	}
	for k := 0; k < len(boxes); k += 2 {
		r := row(boxHeight)
		half := (r.Max.X - r.Min.X) / 2
		boxes[k].Draw(draw.Crop(r, 0, -half, 0, 0))
		boxes[k+1].Draw(draw.Crop(r, half, 0, 0, 0))
	}
	for _, chart := range charts {
		chart.Draw(row(rowHeight))
	}
}

// distributions are four box plots.
func distributions(c sim.Comparison) ([]*plot.Plot, error) {
	over := func(title string, value func(sim.Outcome) float64) (*plot.Plot, error) {
		p := plot.New()
		p.Title.Text = title
		var names []string
		for s, strategy := range c.Strategies {
			values := make(plotter.Values, len(c.Workloads))
			for w := range values {
				values[w] = value(c.Outcomes[w][s])
			}
			box, err := plotter.NewBoxPlot(14, float64(s), values)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", title, err)
			}
			box.FillColor = jobColour(s, .5)
			p.Add(box)
			names = append(names, strategy.Name())
		}
		p.NominalX(names...)
		p.X.Tick.Label.Rotation = .6
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
		p.Add(plotter.NewGrid())
		return p, nil
	}
	var plots []*plot.Plot
	for _, d := range []struct {
		title string
		value func(sim.Outcome) float64
	}{
		{"Effective utilisation (%)", func(o sim.Outcome) float64 { return o.Metrics.EffectiveUtilisation }},
		{"Makespan (proven bound = 1)", func(o sim.Outcome) float64 { return float64(o.Metrics.Makespan) / max(o.Bound, 1) }},
		{"Mean completion (h)", func(o sim.Outcome) float64 { return o.Metrics.AvgCompletion / 3600 }},
		{"Waste (%)", func(o sim.Outcome) float64 { return o.Metrics.Waste }},
	} {
		p, err := over(d.title, d.value)
		if err != nil {
			return nil, err
		}
		plots = append(plots, p)
	}
	return plots, nil
}

// gantts are the plans of one workload, on the same scales.
func gantts(c sim.Comparison, workload int) []*plot.Plot {
	problem := c.Workloads[workload]
	latest := int64(1)
	for _, o := range c.Outcomes[workload] {
		latest = max(latest, o.Metrics.Makespan)
	}
	var plots []*plot.Plot
	for s, strategy := range c.Strategies {
		o := c.Outcomes[workload][s]
		p := plot.New()
		p.Title.Text = fmt.Sprintf("%s: %.1f h, effective utilisation %.1f %%, waste %.1f %%",
			strategy.Name(), hours(o.Metrics.Makespan), o.Metrics.EffectiveUtilisation, o.Metrics.Waste)
		p.Y.Label.Text = "nodes"
		p.X.Min, p.X.Max = 0, hours(latest)
		p.Y.Min, p.Y.Max = 0, float64(problem.Nodes)
		if s == len(c.Strategies)-1 {
			p.X.Label.Text = "hours"
		}
		p.Add(newGantt(problem, o.Schedule))
		plots = append(plots, p)
	}
	return plots
}
