package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

var functions = template.FuncMap{
	"text": text, "clock": clock, "span": span, "asset": func(name string) string { return name + "?v=" + assets()[name].sum }, "state": state,
	"seconds": func(s float64) string { return span(time.Duration(s * float64(time.Second))) },
	"tenths":  tenths,
	"share":   func(of float64) string { return fmt.Sprintf("%.2g %%", 100*of) },
	"hours":   func(h float64) string { return fmt.Sprintf("%.1f", h) },
	"add":     func(a, b int) int { return a + b },
}

// longest is how much of a text is shown.
const longest = 300

// text returns users' text in a safe form: html/template escapes it, and invisible or
// direction-changing characters become question marks.
func text(s string) string {
	if s = legible.Printable(strings.Join(strings.Fields(s), " "), false); len(s) <= longest {
		return s
	}
	return legible.Cut(s, longest, "…")
}

// clock returns a time as short as it can be while clear relative to now.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t, now = t.In(now.Location()), now.Round(0)
	switch y, m, d := t.Date(); {
	case y == now.Year() && m == now.Month() && d == now.Day():
		return t.Format("15:04:05")
	case y == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// span returns a length of time in two units.
func span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "−", -d
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%s%ds", sign, s)
	case s < 3600:
		return fmt.Sprintf("%s%dm%02ds", sign, s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%s%dh%02dm", sign, s/3600, s/60%60)
	}
	return fmt.Sprintf("%s%dd%02dh", sign, s/86400, s/3600%24)
}

// tenths returns a short duration with tenths of a second, or "" for none.
func tenths(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}

// state returns how a job stands, in a word or two.
func state(j api.Job) string {
	switch {
	case j.State == "ended" && j.EndState != "":
		return strings.ToLower(j.EndState)
	case j.Step > 0 && j.State != "ended":
		return fmt.Sprintf("%s, step %d of %d", j.State, j.Step, j.Steps)
	}
	return j.State
}
