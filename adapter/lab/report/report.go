// Package report writes one HTML file about outcomes of a workload: in words, in tables that need
// no JavaScript, and in charts that do (uPlot, package uplot). It fetches nothing, as its content
// security policy says.
package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/show/uplot"
)

//go:embed report.html
var page string

//go:embed report.css
var style string

//go:embed report.js
var script string

var parsed = template.Must(template.New("report").Funcs(template.FuncMap{"seconds": Seconds, "number": Number, "sizes": sizes,
	"span": func(s int64) string { return Seconds(float64(s)) }, "hours": func(s float64) string { return Number(s / 3600) }}).Parse(page))

// Options holds what a report shows beside the outcomes.
type Options struct {
	Title   string
	Command string // command that makes the report
	Version string // of Evoslurm

	// With Sections, these are what the report is about: the outcomes are shown, and not compared.
	Summary  []string
	Sections []Section
}

// Section is a table with a heading.
type Section struct {
	ID, Title string
	Notes     []string
	Head      []string
	Rows      [][]string // as many as Head; the first is the row's heading
}

// Write writes the report. Equal outcomes give equal reports.
func Write(out io.Writer, outcomes []outcome.Outcome, o Options) error {
	charts, err := newCharts(outcomes)
	if err != nil {
		return err
	}
	all := script
	styles := uplot.Style + style
	p := content{Options: o, Rows: rows(outcomes), Charts: charts,
		Unfinished: unfinished(outcomes), Longest: longest(outcomes), Evolving: evolving(outcomes), Outcomes: outcomes, Licence: uplot.Licence, UPlot: uplot.Version}
	p.Style, p.Library, p.Script = template.CSS(styles), template.JS(uplot.Script), template.JS(all)                                                                    //nolint:gosec // our own
	p.Policy = "default-src 'none'; script-src " + source(uplot.Script) + " " + source(all) + "; style-src " + source(styles) + "; base-uri 'none'; form-action 'none'" //nolint:lll
	p.Energy = slices.ContainsFunc(p.Rows, func(r row) bool { return r.Energy != nil })
	p.Types = slices.ContainsFunc(p.Rows, func(r row) bool { return r.Energy != nil && r.Energy.Types != nil })
	if o.Sections == nil {
		p.Summary, p.Neighbours = words(outcomes), neighbours(outcomes)
	}
	if p.Title == "" {
		p.Title = "Evoslurm: what became of a workload"
	}
	return parsed.Execute(out, p)
}

// source returns a script's or style's hash, in the form of a policy.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// content is the data of the template.
type content struct {
	Options
	Policy          string
	Style           template.CSS
	Library, Script template.JS
	Licence, UPlot  string

	Rows       []row
	Energy     bool // some outcome has it
	Types      bool // some outcome has it by type of node
	Neighbours []neighbour
	Unfinished []listed
	Longest    []listed
	Evolving   []listed
	Outcomes   []outcome.Outcome
	Charts     charts
}
