package follow

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// nodesChanged handles that a job has other nodes than before, without an action of the sidecar.
func nodesChanged(c *state.Core, s *state.Snapshot, j *state.Job, held []msg.Part) {
	detail := map[string]any{"from": slurmctl.CompressNodes(j.Nodes()), "to": heldText(held)}
	if lost := lostNodes(s, j.Held, held); j.Runs() && len(lost) > 0 {
		j.Lose(lost)
		c.Save(j)
		detail["lost"] = slurmctl.CompressNodes(lost)
	}
	c.Event(j, "nodes changed", detail)
}

// lostNodes returns the nodes that a job lost because a node failed, from what it had to what it has. Slurm ends a companion with
// all of its nodes if one fails. Nodes that left for another reason, such as a user's scontrol or scancel, are not lost.
func lostNodes(s *state.Snapshot, had, has []msg.Part) (lost []string) {
	var kept []string
	for _, p := range has {
		kept = append(kept, p.Nodes...)
	}
	for i, p := range had {
		gone := msg.Without(p.Nodes, kept)
		ended := i > 0 && !slices.ContainsFunc(has, func(other msg.Part) bool { return other.ID == p.ID })
		if failed := failed(s, gone); !ended || len(failed) == 0 {
			gone = failed
		}
		lost = append(lost, gone...)
	}
	return lost
}

// failed returns those nodes that are down or do not answer.
func failed(s *state.Snapshot, nodes []string) (down []string) {
	for _, name := range nodes {
		if i, ok := s.Index[name]; ok && s.Nodes[i].Failed() {
			down = append(down, name)
		}
	}
	return down
}

// beginsAgain handles that Slurm put a job, or the link of its current step, back into the queue, to begin again in a step.
func beginsAgain(c *state.Core, j *state.Job, step int) {
	lost := failed(c.Snapshot, j.Nodes())
	detail := map[string]any{"step": j.Step}
	if len(lost) > 0 {
		detail["lost"] = slurmctl.CompressNodes(lost)
	}
	j.BeginAgain(step, lost)
	c.Event(j, "requeued", detail)
}
