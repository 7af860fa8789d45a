package display

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// Where explains where a job is and why, one line each: what it has and why, what is planned, and
// what it had. The recorder and the page show it.
func Where(j api.Job) []string {
	text := "it is " + j.State
	if j.Step > 0 {
		text += fmt.Sprintf(" in step %d of %d", j.Step, j.Steps)
	}
	lines := []string{text + fmt.Sprintf(", on %s %s, profile %s, drive mode %s", Nodes(j.Nodes), j.NodeList, j.Asked(), j.Drive)}
	if j.Reason != "" {
		lines = append(lines, "because: "+j.Reason)
	}
	for _, p := range j.Plan {
		lines = append(lines, fmt.Sprintf("planned: step %d from %s to %s on %s %s", p.Step, p.Start.Format(time.DateTime), p.End.Format(time.TimeOnly), Nodes(p.Nodes), p.NodeList))
	}
	for _, p := range j.Past {
		end := "now"
		if !p.End.IsZero() {
			end = p.End.Format(time.TimeOnly)
		}
		lines = append(lines, fmt.Sprintf("had:     step %d from %s to %s on %s %s", p.Step, p.Start.Format(time.DateTime), end, Nodes(p.Nodes), p.NodeList))
	}
	return lines
}

func Nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// Hold describes a hold as Slurm has it.
func Hold(name, nodes string, start, end time.Time) string {
	return fmt.Sprintf("hold %s: %s from %s to %s", name, nodes, start.Format(time.DateTime), end.Format(time.TimeOnly))
}
