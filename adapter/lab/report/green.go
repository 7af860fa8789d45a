package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
)

// Measures of a chart of energy against wait, with its legend to the right.
const (
	greenHeight = 400
	legendWidth = 270
)

// Green draws the energy of every mode against the mean wait, one chart for each load. format is one of Formats.
func Green(out io.Writer, tables []sim.GreenTable, format string) error {
	if !slices.Contains(Formats(), format) {
		return fmt.Errorf("no picture format %q: there are %s", format, strings.Join(Formats(), ", "))
	}
	var body svg
	for i, t := range tables {
		drawGreen(&body, t, chartArea{y: float64(i) * greenHeight, width: pictureWidth - legendWidth, height: greenHeight, below: 20})
	}
	return body.page(out, greenHeight*float64(len(tables)), "Energy against wait", format)
}

// drawGreen draws a load. The modes of a series are joined, and named by their number.
func drawGreen(s *svg, t sim.GreenTable, a chartArea) {
	a.low, a.maxX = t.Least.Avg, 1
	for _, r := range t.Rows {
		a.maxX, a.low, a.top = max(a.maxX, r.Wait.Avg*1.2), min(a.low, r.KWh.Avg), max(a.top, r.KWh.Avg)
	}
	for _, p := range t.Published {
		a.low, a.top = min(a.low, p.KWh), max(a.top, p.KWh)
	}
	room := max(a.top-a.low, .1) / 20
	a.low, a.top = a.low-room, a.top+room
	a.frame(s, fmt.Sprintf("Load %.2f %%: kWh over the mean wait in seconds", t.Load))
	for _, v := range ticks(0, a.maxX, 10) {
		s.text(a.atX(v), a.atY(a.low)+14, "middle", fmt.Sprintf("%g", v), "")
	}
	level := func(kwh float64, words string) {
		s.line(a.atX(0), a.atY(kwh), a.atX(a.maxX), a.atY(kwh), "#999")
		s.text(a.atX(a.maxX), a.atY(kwh)-3, "end", words, "")
	}
	level(t.Least.Avg, "off whenever without a job, boots for nothing")
	if p, ok := t.Published[sim.GreenOAR]; ok {
		level(p.KWh, fmt.Sprintf("thesis: %s, mean wait %.0f s", sim.GreenOAR, p.Wait))
	}
	series := 0
	for i, r := range t.Rows {
		next := i == 0 || t.Rows[i-1].Series != r.Series
		if next {
			series++
		}
		x, y, colour := a.atX(r.Wait.Avg), a.atY(r.KWh.Avg), jobColour(series, .9)
		if !next {
			s.line(a.atX(t.Rows[i-1].Wait.Avg), a.atY(t.Rows[i-1].KWh.Avg), x, y, colour)
		} else {
			atY := a.y + top + 14*float64(series)
			s.dot(a.x+a.width+5, atY-4, colour)
			s.text(a.x+a.width+15, atY, "start", r.Series, "")
		}
		s.dot(x, y, colour)
		s.text(x+4, y-4, "start", strings.TrimFunc(r.Mode, func(c rune) bool { return c < '0' || c > '9' }), "")
	}
}

func (s *svg) dot(x, y float64, fill string) {
	fmt.Fprintf(s, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\" stroke=\"black\"/>\n", x, y, fill)
}
