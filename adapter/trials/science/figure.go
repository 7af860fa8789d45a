package science

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// What the figure looks like, in pixels.
const (
	wide, left, right = 960, 70, 36
	lane, gap, top    = 110, 46, 56
)

const (
	nodesColor, cellsColor = "#4477aa", "#222222"
	insideColor, soonColor = "#ee6677", "#dddddd"
)

// Figure writes a trial as SVG: a lane for each way with its nodes, its mesh, and what it waits for, over the seconds since its submission.
func Figure(out io.Writer, t Trial) error {
	var b strings.Builder
	most, cells := 1., 1.
	for _, w := range t.Ways {
		most = max(most, t.Row(w).Makespan)
		for _, c := range w.Mesh {
			cells = max(cells, c.Cells)
		}
	}
	high := top + len(t.Ways)*(lane+gap) + 10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="12">`+"\n", wide, high)
	fmt.Fprintf(&b, "<title>Nodes, mesh, and waits of a case in %d ways on the same full cluster</title>\n", len(t.Ways))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", wide, high)
	x := left
	for _, k := range []struct{ color, text string }{{nodesColor, "nodes of the case"}, {cellsColor, "cells of its mesh"}, {soonColor, "waits for its start"}, {insideColor, "waits between its steps"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="16" width="14" height="12" fill="%s"/><text x="%d" y="26">%s</text>`+"\n", x, k.color, x+20, k.text)
		x += 50 + 7*len(k.text)
	}
	for i, w := range t.Ways {
		t.lane(&b, w, float64(top+i*(lane+gap)), most, cells)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// lane draws a way.
func (t Trial) lane(b *strings.Builder, w Way, y, most, cells float64) {
	r, peak := t.Row(w), 1.
	for _, s := range t.Steps {
		peak = max(peak, float64(s.Nodes))
	}
	at := func(seconds float64) float64 {
		return left + (wide-left-right)*min(max(seconds-w.Submit, 0), most)/most
	}
	height := func(part float64) float64 { return y + lane - lane*part }
	bar := func(color string, from, to float64) {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", at(from), y, max(at(to)-at(from), 0), lane, color)
	}
	fmt.Fprintf(b, `<text x="%d" y="%.1f" font-weight="bold">%s</text>`, left, y-6, w.Name)
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">waited %.0f s before and %.0f s inside; %.2f node-hours; done after %.0f s</text>`+"\n", wide-right, y-6, r.Before, r.Inside, r.Had/3600, r.Makespan)
	bar(soonColor, w.Submit, w.Spans[0].Begun)
	for k := 1; k < len(w.Spans); k++ {
		bar(insideColor, w.Spans[k-1].Done, w.Spans[k].Begun)
	}
	fmt.Fprintf(b, `<path fill="%s" fill-opacity="0.6" d="M%.1f %.1f`, nodesColor, at(w.Submit), height(0))
	had, end := 0, w.Submit
	for _, p := range w.Polls {
		if p.At < w.Submit || p.At-w.Submit > most {
			continue
		}
		if end = p.At; p.Case != had {
			had = p.Case
			fmt.Fprintf(b, "H%.1fV%.1f", at(p.At), height(float64(had)/peak))
		}
	}
	fmt.Fprintf(b, `H%.1fV%.1fZ"/>`+"\n", at(end), height(0))
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, cellsColor)
	for i, c := range w.Mesh {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", at(t.At(w, c.Iteration)), height(c.Cells/cells))
		if next := t.after(c.Iteration); next > 0 {
			fmt.Fprintf(b, " %.1f,%.1f", at(w.Spans[next].Begun), height(c.Cells/cells)) // the mesh waits
		}
	}
	b.WriteString(`"/>` + "\n")
	fmt.Fprintf(b, `<path fill="none" stroke="#888888" d="M%d %.1fV%.1fH%d"/>`, left, y, height(0), wide-right)
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%.0f nodes</text><text x="%d" y="%.1f" text-anchor="end">%.0f cells</text>`+"\n", left-4, y+10, peak, left-4, y+26, cells)
	tick := math.Pow(10, math.Ceil(math.Log10(most/20)))
	for s := 0.; s <= most; s += tick {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555555">%.0f s</text>`, at(w.Submit+s), height(0)+14, s)
	}
	b.WriteByte('\n')
}
