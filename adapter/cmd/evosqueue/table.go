package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
	"github.com/evoslurm/evoslurm/adapter/show/display"
)

// column is one column of the table.
type column struct {
	title string
	right bool
	text  func(j display.Line, now time.Time) string
}

var (
	idColumn   = column{"JOBID", true, func(j display.Line, _ time.Time) string { return j.Label() }}
	userColumn = column{"USER", false, func(j display.Line, _ time.Time) string { return j.User }}
	stepColumn = column{"STEP", false, func(j display.Line, _ time.Time) string { return fmt.Sprintf("%d/%d", j.Step, j.Steps) }}
	nextColumn = column{"NEXT", false, func(j display.Line, now time.Time) string { return next(j.Job, now) }}
	nodeColumn = column{"NODES", true, func(j display.Line, _ time.Time) string { return strconv.Itoa(j.Nodes) }}
	whyColumn  = column{"REASON", false, func(j display.Line, _ time.Time) string { return j.Reason }}
)

var shortColumns = []column{
	idColumn,
	{"NAME", false, func(j display.Line, _ time.Time) string { return legible.Cut(j.Name, 16, "+") }},
	userColumn,
	{"ST", false, func(j display.Line, _ time.Time) string { return stateCode(j.Job) }},
	stepColumn, nodeColumn, nextColumn,
	{"START", false, func(j display.Line, now time.Time) string { return near(j.Start, now) }},
	{"END", false, func(j display.Line, now time.Time) string { return near(j.End, now) }},
	whyColumn,
}

var longColumns = []column{
	idColumn,
	{"PARTITION", false, func(j display.Line, _ time.Time) string { return j.Partition }},
	{"NAME", false, func(j display.Line, _ time.Time) string { return j.Name }},
	userColumn,
	{"STATE", false, func(j display.Line, _ time.Time) string { return stateName(j.Job) }},
	stepColumn, nodeColumn, nextColumn,
	{"SUBMIT", false, func(j display.Line, now time.Time) string { return full(j.Submit, now) }},
	{"START", false, func(j display.Line, now time.Time) string { return full(j.Start, now) }},
	{"END", false, func(j display.Line, now time.Time) string { return full(j.End, now) }},
	{"PROFILE", false, func(j display.Line, _ time.Time) string { return legible.Cut(j.Asked(), 40, "+") }},
	{"LIMIT", false, func(j display.Line, _ time.Time) string { return j.ExpandLimit }},
	{"DRIVE", false, func(j display.Line, _ time.Time) string { return j.Drive }},
	{"NODELIST", false, func(j display.Line, _ time.Time) string { return j.NodeList }},
	whyColumn,
}

// table writes lines in columns that are as wide as they need to be.
func table(lines []display.Line, now time.Time, columns []column, header, ascii bool) string {
	var rows [][]string
	if header {
		titles := make([]string, len(columns))
		for i, c := range columns {
			titles[i] = c.title
		}
		rows = append(rows, titles)
	}
	for _, j := range lines {
		row := make([]string, len(columns))
		for i, c := range columns {
			if row[i] = legible.Printable(c.text(j, now), ascii); row[i] == "" {
				row[i] = "-"
			}
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], legible.Columns(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-legible.Columns(cell))
			if columns[i].right {
				line.WriteString(gap + cell + "  ")
			} else {
				line.WriteString(cell + gap + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// next returns what changes next and when: "+3 in 4:10", "-4 in 0:20", "end in 2:00".
func next(j api.Job, now time.Time) string {
	if j.State == "ended" || j.NextChange.IsZero() {
		return ""
	}
	change := "end"
	if d := j.NextNodes - j.Nodes; j.NextNodes > 0 {
		change = fmt.Sprintf("%+d", d)
		if d == 0 {
			change = "step"
		}
	}
	left := j.NextChange.Sub(now)
	if left < time.Second {
		return change + " now"
	}
	return change + " in " + clock(left)
}

// clock writes a length of time as squeue does: 0:20, 4:10, 1:00:00, 2-03:00:00.
func clock(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case s >= 86400:
		return fmt.Sprintf("%d-%02d:%02d:%02d", s/86400, s/3600%24, s/60%60, s%60)
	case s >= 3600:
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// near writes a time as short as it can be while clear relative to now.
func near(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	if format := os.Getenv("SLURM_TIME_FORMAT"); format != "" {
		return display.SlurmTime(t, now, format)
	}
	t = t.In(now.Location())
	y, m, d := t.Date()
	if ny, nm, nd := now.Date(); y == ny && m == nm && d == nd {
		return t.Format("15:04:05")
	}
	if t.Year() == now.Year() {
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2006-01-02")
}

// full writes a time as squeue does.
func full(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return display.SlurmTime(t, now, os.Getenv("SLURM_TIME_FORMAT"))
}
