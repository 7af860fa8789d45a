package request

import (
	"fmt"

	"github.com/evoslurm/evoslurm/planner"
)

// Resize is a step by which a Slurm job of an evolving one is made smaller.
type Resize struct {
	Step, Nodes int  // the step, from 1 on, and its nodes
	Of          int  // nodes that the Slurm job has until then
	Base        bool // the base job, not a companion
	Again       bool // it was made smaller before
}

// Resizes returns the resizes of a profile whose growths are companions, given back newest first,
// whole if possible. O(steps).
func Resizes(p planner.Profile) []Resize {
	type part struct {
		nodes   int
		resized bool
	}
	var parts []part // the base job, then companions
	var all []Resize
	have := 0
	for i, step := range p {
		for have > step.Nodes {
			last := &parts[len(parts)-1]
			if surplus := have - step.Nodes; last.nodes > surplus {
				all = append(all, Resize{i + 1, step.Nodes, last.nodes, len(parts) == 1, last.resized})
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
	return all
}

// Resized says at which step of a profile a Slurm job would have to be made smaller; "": at
// none.
func Resized(p planner.Profile) string {
	all := Resizes(p)
	switch {
	case len(all) == 0:
		return ""
	case all[0].Base:
		return fmt.Sprintf("step %d, of %d nodes, would have to give back nodes of the %d with which the job begins", all[0].Step, all[0].Nodes, all[0].Of)
	}
	return fmt.Sprintf("step %d, of %d nodes, would have to give back a part of the nodes of a growth", all[0].Step, all[0].Nodes)
}

// ResizedTwice returns the step of a profile at which a Slurm job would shrink a second time, or
// "". Some Slurms resize a job only once (slurmctl.ResizesOnce).
func ResizedTwice(p planner.Profile) string {
	for _, r := range Resizes(p) {
		if r.Again {
			return fmt.Sprintf("step %d, of %d nodes, would give back nodes of one Slurm job for the second time", r.Step, r.Nodes)
		}
	}
	return ""
}

// StepMgrWords say why a job with a step manager is not made smaller (slurmctl.StepMgr), StepMgrRemedy what may
// be done about it.
const (
	StepMgrWords  = "the job has a step manager (Slurm's stepmgr), and its steps would still run there while others have these nodes"
	StepMgrRemedy = "begin with the fewest nodes and give back as many as a growth has brought, or use --drive=chain"
)

// OnceRemedy is the remedy for that.
const OnceRemedy = "give back in one step, or as many as a growth has brought, use --drive=chain, or have the administrator run slurmdbd"
