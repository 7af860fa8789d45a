package request

import (
	"fmt"

	"github.com/evoslurm/evoslurm/planner"
)

// ResizedTwice says at which step of a profile a Slurm job would be made smaller a second
// time, where growths are companions that are given back newest first, whole if they can
// be; "": at none. Some Slurms resize a job only once (slurmctl.ResizesOnce).
func ResizedTwice(p planner.Profile) string {
	type part struct {
		nodes   int
		resized bool
	}
	var parts []part
	have := 0
	for i, step := range p {
		for have > step.Nodes {
			last := &parts[len(parts)-1]
			if surplus := have - step.Nodes; last.nodes > surplus {
				if last.resized {
					return fmt.Sprintf("step %d, of %d nodes, would give back nodes of one Slurm job for the second time", i+1, step.Nodes)
				}
				last.nodes, last.resized, have = last.nodes-surplus, true, step.Nodes
				continue
			}
			have -= last.nodes
			parts = parts[:len(parts)-1]
		}
		if step.Nodes > have {
			parts, have = append(parts, part{nodes: step.Nodes - have}), step.Nodes
		}
	}
	return ""
}

// OnceRemedy is what may be done about it.
const OnceRemedy = "give back in one step, or as many as a growth has brought, use --drive=chain, or have the administrator run slurmdbd"
