package sites

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Outcome is how something that was tried on a site went.
type Outcome string

// The outcomes. Refused: evosbatch said no, in the words of Text, and nothing was left
// behind, as it should be there. Skipped: the site's Slurm cannot be had here.
const (
	Passed  Outcome = "passed"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Result is one thing tried on one site.
type Result struct {
	Site    string
	Slurm   string // version
	Case    string
	Drive   string // drive mode that the job got, if it ran
	Outcome Outcome
	Text    string        // what came of it, in short
	Start   time.Duration // from the submission until it ran
	Grow    time.Duration // the longest that it waited for the nodes of a step
	Took    time.Duration // in all
}

// WriteTable writes the results as text, with times.
func WriteTable(w io.Writer, results []Result) {
	rows := [][]string{{"site", "tried", "drive mode", "result", "start", "growth", "all"}}
	for _, r := range ordered(results) {
		rows = append(rows, []string{r.Site, r.Case, r.Drive, r.said(), seconds(r.Start), seconds(r.Grow), seconds(r.Took)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&line, "%s%s  ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

func (r Result) said() string {
	if r.Text == "" {
		return string(r.Outcome)
	}
	return string(r.Outcome) + ": " + r.Text
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// ordered is in the order of the sites, and of what was tried on each.
func ordered(results []Result) []Result {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b Result) int { return slices.Index(names, a.Site) - slices.Index(names, b.Site) })
	return sorted
}

// Heading begins the part of slurmctl/MATRIX.md that is about sites.
const Heading = "## Real sites\n"

// OpenDocument fails if no document can be written at path, before the sites take their time. It creates one that is
// missing. Without a path, it does nothing.
func OpenDocument(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// WriteDocument writes the dated table into the document at path, in the place of the
// one that is there.
func WriteDocument(path string, results []Result, day time.Time) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, _ := strings.Cut(string(old), "\n"+Heading)
	var b strings.Builder
	b.WriteString(strings.TrimRight(before, "\n") + "\n\n" + Heading)
	version, results := "?", ordered(results)
	if len(results) > 0 {
		version = results[0].Slurm
	}
	fmt.Fprintf(&b, "\nWritten by `make sites` on %s, on Slurm %s unless a row names another: evolving jobs on configurations that real sites publish,\n"+
		"scaled to eight nodes or so (package `adapter/trials/sites` has them). *passed*: all nodes of every step, with the memory and\n"+
		"GRES of the first one's, commands over all of them, nothing left behind, nobody else's job touched.\n"+
		"*refused*: at submission, in these words, with nothing left in the queue.\n\n", day.UTC().Format(time.DateOnly), version)
	b.WriteString("| site | tried | drive mode | result |\n|---|---|---|---|\n")
	var traps []string
	last := ""
	for _, r := range results {
		name := r.Site
		switch {
		case name == last:
			name = ""
		case r.Slurm != version:
			name += " (Slurm " + r.Slurm + ")"
		}
		last = r.Site
		said := r.said()
		if r.Outcome == Failed {
			said = "**failed**: " + r.Text
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, r.Case, r.Drive, strings.ReplaceAll(said, "|", "\\|"))
	}
	for _, s := range All() {
		if slices.ContainsFunc(results, func(r Result) bool { return r.Site == s.Name }) {
			source := ""
			if s.Source != "" {
				source = " (" + s.Source + ")"
			}
			traps = append(traps, fmt.Sprintf("- **%s**: %s.%s\n", s.Name, s.Trap, source))
		}
	}
	b.WriteString("\nWhat is special there, and the source of the configuration (those without one have a setting of many published\nslurm.conf files):\n\n" + strings.Join(traps, ""))
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
