package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// agreements returns what malleable jobs may have, their progress, and their last offers with the
// answers; "" if no job is malleable or has reported progress.
func agreements(jobs []api.Job, now time.Time, ascii bool) string {
	var b strings.Builder
	for _, j := range jobs {
		if j.Bounds == "" && j.Progress == nil {
			continue
		}
		var parts []string
		if j.Bounds != "" {
			parts = append(parts, "may have "+legible.Cut(j.Bounds, 60, "+"))
		}
		if j.Lent != "" {
			parts = append(parts, "is lent "+j.Lent)
		}
		if p := j.Progress; p != nil {
			parts = append(parts, progressWords(p, now))
		}
		fmt.Fprintf(&b, "\nJob %d %s\n", j.ID, legible.Printable(strings.Join(parts, "; "), ascii))
		for _, o := range j.Offers {
			fmt.Fprintf(&b, "   %s  %s\n", full(o.Made, now), legible.Printable(offerWords(o, now), ascii))
		}
	}
	return b.String()
}

// progressText returns the field {progress}.
func progressText(j api.Job) string {
	if j.Progress == nil {
		return ""
	}
	return fmt.Sprintf("%.4g%%", 100*j.Progress.Fraction)
}

func progressWords(p *api.Progress, now time.Time) string {
	text := fmt.Sprintf("%.4g%% done at %s", 100*p.Fraction, full(p.At, now))
	if p.Speedup != "" {
		text += ", measured " + p.Speedup
	}
	for i, m := range p.Measured {
		open := ", "
		if i == 0 {
			open = " ("
		}
		text += fmt.Sprintf("%s%.4g%% in %v on %d nodes", open, 100*m.Fraction, time.Duration(m.Seconds)*time.Second, m.Nodes)
	}
	if len(p.Measured) > 0 {
		text += ")"
	}
	return text
}

// offerWords returns an offer and what became of it.
func offerWords(o api.Offer, now time.Time) string {
	kind := "offered"
	switch {
	case o.Mandatory:
		kind = "demanded"
	case o.Kind == "shrink":
		kind = "asked for"
	}
	text := fmt.Sprintf("%s %d beside %d nodes, %s, until %s", kind, o.Nodes, o.Has, o.NodeList, full(o.Deadline, now))
	if o.Kind == "shrink" {
		text = fmt.Sprintf("%s %d of %d nodes, %s, until %s", kind, o.Nodes, o.Has, o.NodeList, full(o.Deadline, now))
	}
	if !o.Until.IsZero() {
		text += ", to be left by " + full(o.Until, now)
	}
	if o.Why != "" {
		text += ": " + o.Why
	}
	if !o.Answered.IsZero() && !o.Enforced && o.Accepted > 0 {
		text += fmt.Sprintf("; accepted %d at %s", o.Accepted, full(o.Answered, now))
		if !o.Back.IsZero() {
			text += ", to give back by " + full(o.Back, now)
		}
	}
	switch {
	case o.Enforced:
		text += "; taken"
	case o.State == "done" && o.Kind == "shrink":
		text += "; given back"
	case o.State == "done":
		text += "; lent"
	case o.State != "accepted":
		text += "; " + o.State
	}
	if !o.Closed.IsZero() {
		text += " at " + full(o.Closed, now)
	}
	if o.Note != "" && o.Note != o.State && o.State != "unanswered" {
		text += ": " + o.Note
	}
	return text
}
