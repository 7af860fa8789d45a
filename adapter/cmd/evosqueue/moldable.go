package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/legible"
)

// alternatives returns the alternatives of the moldable jobs, one per line, with their outcomes and
// an arrow at the one that a job gets; "" if no job is moldable.
func alternatives(jobs []api.Job, now time.Time, ascii bool) string {
	var b strings.Builder
	for _, j := range jobs {
		m := j.Moldable
		if m == nil {
			continue
		}
		how := "is planned with"
		if m.Fixed {
			how = "has started with"
		}
		fmt.Fprintf(&b, "\nJob %d %s alternative %d of %d, by %s:\n", j.ID, how, m.Choice, len(m.Alternatives), m.By)
		for i, a := range m.Alternatives {
			mark := "  "
			if i+1 == m.Choice {
				mark = "->"
			}
			text := a.Reason
			if !a.End.IsZero() {
				text = fmt.Sprintf("%s to %s, %.2f node-hours, %.2f of them wasted", full(a.Start, now), full(a.End, now), a.NodeHours, a.Waste)
			} else if text == "" {
				text = fmt.Sprintf("%.2f node-hours", a.NodeHours)
			}
			fmt.Fprintf(&b, "%s %d  %s  %s\n", mark, i+1, legible.Cut(a.Profile, 60, "+"), legible.Printable(text, ascii))
		}
	}
	return b.String()
}
