// Package report makes one HTML file of outcomes of a workload: in words, in tables that need no JavaScript,
// and in charts that do (uPlot, package uplot). It fetches nothing, and says so in its content security policy.
package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
	"github.com/evoslurm/evoslurm/adapter/show/uplot"
)

//go:embed report.html
var page string

//go:embed report.css
var style string

//go:embed report.js
var script string

var parsed = template.Must(template.New("report").Funcs(template.FuncMap{"seconds": seconds, "number": number, "sizes": sizes,
	"span": func(s int64) string { return seconds(float64(s)) }, "hours": func(s float64) string { return number(s / 3600) }}).Parse(page))

// Options are what a report has beside the outcomes.
type Options struct {
	Title   string
	Command string // that makes the report
	Version string // of Evoslurm
}

// Write writes the report. Equal outcomes give equal reports.
func Write(out io.Writer, outcomes []outcome.Outcome, o Options) error {
	charts, err := newCharts(outcomes)
	if err != nil {
		return err
	}
	all := script
	styles := uplot.Style + style
	p := content{Options: o, Summary: words(outcomes), Rows: rows(outcomes), Neighbours: neighbours(outcomes), Charts: charts,
		Unfinished: unfinished(outcomes), Longest: longest(outcomes), Evolving: evolving(outcomes), Outcomes: outcomes, Licence: uplot.Licence, UPlot: uplot.Version}
	p.Style, p.Library, p.Script = template.CSS(styles), template.JS(uplot.Script), template.JS(all)                                                                    //nolint:gosec // our own
	p.Policy = "default-src 'none'; script-src " + source(uplot.Script) + " " + source(all) + "; style-src " + source(styles) + "; base-uri 'none'; form-action 'none'" //nolint:lll
	if p.Title == "" {
		p.Title = "Evoslurm: what became of a workload"
	}
	return parsed.Execute(out, p)
}

// source is a script or style by its hash, as a policy names it.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// content is what the template shows.
type content struct {
	Options
	Policy          string
	Style           template.CSS
	Library, Script template.JS
	Licence, UPlot  string

	Summary    []string
	Rows       []row
	Neighbours []neighbour
	Unfinished []listed
	Longest    []listed
	Evolving   []listed
	Outcomes   []outcome.Outcome
	Charts     charts
}
