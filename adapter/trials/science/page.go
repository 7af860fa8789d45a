package science

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var page string

const style = `body{font-family:sans-serif;max-width:62em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid #ccc}th:first-child,td:first-child{text-align:left}svg{width:100%}`

var parsed = template.Must(template.New("science").Parse(page))

// Heads holds the headings of Cells.
var Heads = []string{"way", "waited before", "waited inside", "at each growth, s", "at each shrink, s", "done after", "node-hours had", "needed", "idle while jobs waited", "of that by holds", "stock jobs later by holds"}

// Fields returns a way's row of the table, under Heads.
func (t Trial) Fields(w Way) []string {
	r := t.Row(w)
	each := func(waits []float64) string {
		var texts []string
		for _, seconds := range waits {
			texts = append(texts, fmt.Sprintf("%.1f", seconds))
		}
		return cmp.Or(strings.Join(texts, ", "), "–")
	}
	hours := func(nodeSeconds float64) string { return fmt.Sprintf("%.2f", nodeSeconds/3600) }
	held, later := "–", "–"
	if w.Counted {
		held, later = hours(r.HeldIdle), fmt.Sprintf("%d, by %.0f s in all", w.Later, w.LaterBy)
	}
	return []string{w.Name, fmt.Sprintf("%.0f s", r.Before), fmt.Sprintf("%.0f s", r.Inside), each(r.Growths), each(r.Shrinks), fmt.Sprintf("%.0f s", r.Makespan),
		hours(r.Had), hours(r.Needed), hours(r.Unused), held, later}
}

// MeanHeads holds the headings of Means.
var MeanHeads = []string{"way", "waited before, s", "waited inside, s", "at a growth, s", "at a shrink, s", "done after, s", "node-hours had"}

// Means returns for each way what the streams have in the mean, with the least and the most, under MeanHeads. All growths of all streams
// count as one sample, and so do all shrinks.
func Means(trials []Trial) (rows [][]string) {
	for i, w := range trials[0].Ways {
		var samples [6][]float64
		for _, t := range trials {
			r := t.Row(t.Ways[i])
			for k, values := range [][]float64{{r.Before}, {r.Inside}, r.Growths, r.Shrinks, {r.Makespan}, {r.Had / 3600}} {
				samples[k] = append(samples[k], values...)
			}
		}
		row := []string{w.Name}
		for k, values := range samples {
			digits := []int{0, 0, 1, 1, 0, 2}[k]
			if len(values) == 0 {
				row = append(row, "–")
				continue
			}
			sum := 0.
			for _, v := range values {
				sum += v
			}
			row = append(row, fmt.Sprintf("%.*f (%.*f … %.*f)", digits, sum/float64(len(values)), digits, slices.Min(values), digits, slices.Max(values)))
		}
		rows = append(rows, row)
	}
	return rows
}

// Tables returns the tables of a result in Markdown: each stream, and the means.
func Tables(r Result) string {
	var b strings.Builder
	table := func(heads []string, rows [][]string) {
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
		for _, row := range rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	b.WriteString(r.About + "\n")
	for _, t := range r.Trials {
		fmt.Fprintf(&b, "\nStream %d:\n\n", t.Seed)
		var rows [][]string
		for _, w := range t.Ways {
			rows = append(rows, t.Fields(w))
		}
		table(Heads, rows)
	}
	fmt.Fprintf(&b, "\nThe mean of %d streams, and in parentheses the least and the most:\n\n", len(r.Trials))
	table(MeanHeads, Means(r.Trials))
	return b.String()
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
func Trace(out io.Writer, about string, t Trial, w Way) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# contrib/examples/amr as an evolving job on a private Slurm (make science, stream %d). %s\n# SECONDS CELLS KIB NODES\n", t.Seed, about)
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
func Page(out io.Writer, r Result) error {
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
		Means  [][]string
		Over   []string
	}{"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'", style, r.About, Heads, nil, Means(r.Trials), MeanHeads}
	for _, t := range r.Trials {
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
