package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/lab/outcome"
)

// row is an outcome's figures.
type row struct {
	Name       string
	Of         string // which jobs
	Whole      bool   // whole outcome
	Unfinished int
	outcome.Figures
	KWh    float64         // of its jobs; 0 if unknown
	Energy *outcome.Energy // of the whole outcome; nil if unknown
}

// newRow returns the figures of an outcome, or of some of its jobs.
func newRow(name, of string, r *outcome.Run) row {
	one := row{Name: name, Of: of, Unfinished: r.Unfinished(), Figures: r.Measure(), Energy: r.Energy}
	for i := range r.Jobs {
		one.KWh += r.Jobs[i].KWh
	}
	return one
}

func evolves(j *outcome.Job) bool { return j.Evolving }

func rows(all []outcome.Outcome) (rows []row) {
	for i := range all {
		o := &all[i]
		whole := newRow(o.Name, "all", &o.Run)
		whole.Whole = true
		rows = append(rows, whole)
		if evolving, stock := o.Of(evolves), o.Of(func(j *outcome.Job) bool { return !j.Evolving }); len(evolving.Jobs) > 0 {
			rows = append(rows, newRow(o.Name, "evolving", &evolving), newRow(o.Name, "stock", &stock))
		}
	}
	return rows
}

// neighbour compares the stock jobs of an outcome with another in which all jobs are rigid.
type neighbour struct {
	Name, Rigid string
	outcome.Neighbours
}

func neighbours(all []outcome.Outcome) (some []neighbour) {
	changes := make([]int, len(all))
	for i := range all {
		changes[i] = all[i].Measure().Changes
	}
	for i := range all {
		for k := range all {
			if changes[i] == 0 || changes[k] > 0 {
				continue
			}
			if n := outcome.Compare(all[i].Jobs, all[k].Jobs); n.Stock+n.Lost > 0 {
				some = append(some, neighbour{all[i].Name, all[k].Name, n})
			}
		}
	}
	return some
}

// listed is a job in a table.
type listed struct {
	Name string // the outcome's
	*outcome.Job
}

// most bounds the rows of a list of jobs.
const most = 20

func unfinished(all []outcome.Outcome) (some []listed) {
	for i := range all {
		n := 0
		for k := range all[i].Jobs {
			if j := &all[i].Jobs[k]; j.State != outcome.Completed && n < most && (j.Reason != "" || j.Start < 0) {
				some = append(some, listed{all[i].Name, j})
				n++
			}
		}
	}
	return some
}

func longest(all []outcome.Outcome) (some []listed) {
	for i := range all {
		for _, j := range all[i].Longest(most / 2) {
			some = append(some, listed{all[i].Name, j})
		}
	}
	return some
}

func evolving(all []outcome.Outcome) (some []listed) {
	for i := range all {
		n := 0
		for k := range all[i].Jobs {
			if j := &all[i].Jobs[k]; j.Evolving && j.Ran() && n < most {
				some = append(some, listed{all[i].Name, j})
				n++
			}
		}
	}
	return some
}

// words returns the report in a few sentences.
func words(all []outcome.Outcome) (text []string) {
	if len(all) == 0 {
		return nil
	}
	say := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	figures := make([]outcome.Figures, len(all))
	for i := range all {
		o := &all[i]
		f := o.Measure()
		figures[i] = f
		evolve := ""
		if n := len(o.Of(evolves).Jobs); n > 0 {
			evolve = fmt.Sprintf(" (%s evolve)", count(n, ""))
		}
		half := "half of them did not wait"
		if f.Wait.Median > 0 {
			half = "half of them waited " + Seconds(f.Wait.Median) + " or less"
		}
		say("%s: %s on %s%s. The last one ended after %s; %s, on average they waited %s.", o.Name, count(f.Jobs, "job"), count(o.Nodes, "node"), evolve,
			Seconds(float64(f.Makespan)), half, Seconds(f.Wait.Mean))
		if n := o.Unfinished(); n > 0 {
			say("%s of %s did not complete.", count(n, "job"), o.Name)
		}
	}
	if len(all) > 1 {
		best, worst := 0, 0
		for i := range figures {
			if figures[i].Wait.Mean < figures[best].Wait.Mean {
				best = i
			}
			if figures[i].Wait.Mean > figures[worst].Wait.Mean {
				worst = i
			}
		}
		if Seconds(figures[best].Wait.Mean) != Seconds(figures[worst].Wait.Mean) {
			say("Jobs wait shortest under %s and longest under %s: %s against %s on average.", all[best].Name, all[worst].Name, Seconds(figures[best].Wait.Mean), Seconds(figures[worst].Wait.Mean))
		}
	}
	for _, n := range neighbours(all) {
		if n.Later+n.Lost == 0 {
			say("No stock job starts later under %s than beside rigid jobs under %s.", n.Name, n.Rigid)
		} else {
			say("%d of %s start later under %s than beside rigid jobs under %s, the worst by %s; %d start earlier.", n.Later+n.Lost, count(n.Stock+n.Lost, "stock job"), n.Name, n.Rigid, Seconds(n.By.Max), n.Earlier)
		}
	}
	return text
}

// count returns a count with its noun and with thousands separators.
func count(n int, of string) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if of == "" {
		return text
	}
	if n != 1 {
		of += "s"
	}
	return text + " " + of
}

// Seconds returns a duration for people.
func Seconds(s float64) string {
	switch {
	case s < 0:
		return "-" + Seconds(-s)
	case s < 120:
		return Number(s) + " s"
	case s < 2*3600:
		return Number(s/60) + " min"
	case s < 48*3600:
		return Number(s/3600) + " h"
	}
	return Number(s/86400) + " d"
}

// Number shows one decimal place if it is significant.
func Number(x float64) string {
	if x == math.Trunc(x) || math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// sizes returns the sizes of a job up to its end.
func sizes(s []outcome.Size) string {
	var all []string
	for i := range max(len(s)-1, 0) {
		all = append(all, fmt.Sprintf("%d@%ds", s[i].Nodes, s[i+1].At-s[i].At))
	}
	return strings.Join(all, ", ")
}
