package science

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var page string

const style = `body{font-family:sans-serif;max-width:62em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid #ccc}th:first-child,td:first-child{text-align:left}svg{width:100%}`

var parsed = template.Must(template.New("science").Parse(page))

// Heads holds the headings of Cells.
var Heads = []string{"way", "waited before", "waited inside", "at each growth, s", "done after", "node-hours had", "needed", "idle while jobs waited", "of that by holds", "stock jobs later by holds"}

// Fields returns a way's row of the table, under Heads.
func (t Trial) Fields(w Way) []string {
	r := t.Row(w)
	growths := "–"
	for i, g := range r.Growths {
		if i == 0 {
			growths = fmt.Sprintf("%.1f", g)
		} else {
			growths += fmt.Sprintf(", %.1f", g)
		}
	}
	hours := func(nodeSeconds float64) string { return fmt.Sprintf("%.2f", nodeSeconds/3600) }
	return []string{w.Name, fmt.Sprintf("%.0f s", r.Before), fmt.Sprintf("%.0f s", r.Inside), growths, fmt.Sprintf("%.0f s", r.Makespan),
		hours(r.Had), hours(r.Needed), hours(r.Unused), hours(r.HeldIdle), fmt.Sprintf("%d, by %.0f s in all", w.Later, w.LaterBy)}
}

// Ideal returns how long a rigid job on the peak would take, and its node-seconds, if more nodes than a step needs always helped.
func (t Trial) Ideal() (seconds, nodeSeconds float64) {
	peak := 0
	for _, s := range t.Steps {
		nodeSeconds += float64(s.Nodes) * s.Seconds
		peak = max(peak, s.Nodes)
	}
	return nodeSeconds / float64(peak), nodeSeconds
}

// Trace writes a way's cells and nodes over time, as docs/data has them, in seconds since its first step began.
func Trace(out io.Writer, t Trial, w Way) error {
	var b strings.Builder
	b.WriteString("# SECONDS CELLS KIB NODES\n")
	for _, c := range w.Mesh {
		at, nodes := t.At(w, c.Iteration), 0
		for i, s := range t.Steps {
			if at > w.Spans[i].Begun {
				nodes = s.Nodes
			}
		}
		fmt.Fprintf(&b, "%.1f %.0f - %d\n", at-w.Spans[0].Begun, c.Cells, nodes)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Page writes one HTML file with the figure and the table of each trial. It fetches nothing and runs nothing.
func Page(out io.Writer, trials []Trial, about string) error {
	type shown struct {
		Trial
		Figure template.HTML
		Rows   [][]string
		Same   bool
		Ideal  string
	}
	sum := sha256.Sum256([]byte(style))
	data := struct {
		Policy string
		Style  template.CSS
		About  string
		Heads  []string
		Trials []shown
	}{"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'", style, about, Heads, nil}
	for _, t := range trials {
		var figure strings.Builder
		if err := Figure(&figure, t); err != nil {
			return err
		}
		s := shown{Trial: t, Figure: template.HTML(figure.String()), Same: true}
		for _, w := range t.Ways {
			s.Rows = append(s.Rows, t.Fields(w))
			s.Same = s.Same && Same(w, t.Ways[0])
		}
		seconds, nodeSeconds := t.Ideal()
		s.Ideal = fmt.Sprintf("%.0f s and %.2f node-hours", seconds, nodeSeconds/3600)
		data.Trials = append(data.Trials, s)
	}
	return parsed.Execute(out, data)
}
