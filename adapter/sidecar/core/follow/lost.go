package follow

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A poll reads the nodes first, and the jobs afterwards. If a node fails in between, the poll shows a job without the node, and the
// node as up. So nodes that left a job count as open for some polls, until one of these shows that they failed.

const (
	openPolls = 3                // polls in which a node that left a job may turn out to have failed
	openFor   = 10 * time.Second // the shortest time that these polls take together
)

// nodesChanged handles that a job has other nodes than before, without an action of the sidecar.
func nodesChanged(c *state.Core, s *state.Snapshot, j *state.Job, held []msg.Part) {
	detail := map[string]any{"from": slurmctl.CompressNodes(j.Nodes()), "to": heldText(held)}
	if j.Runs() {
		for _, l := range leftNodes(j.Held, held) {
			l.Step, l.Seen = j.Step, s.Taken
			j.Left = append(j.Left, l)
		}
		if lost := lose(c, s, j, j.Step); len(lost) > 0 {
			detail["lost"] = slurmctl.CompressNodes(lost)
		}
	}
	c.Event(j, "nodes changed", detail)
}

// leftNodes returns the nodes that left a job, from what it had to what it has. Slurm ends a companion with all of its nodes if one
// fails.
func leftNodes(had, has []msg.Part) (all []msg.Left) {
	var kept []string
	for _, p := range has {
		kept = append(kept, p.Nodes...)
	}
	for i, p := range had {
		if gone := msg.Without(p.Nodes, kept); len(gone) > 0 {
			ended := i > 0 && !slices.ContainsFunc(has, func(other msg.Part) bool { return other.ID == p.ID })
			all = append(all, msg.Left{Nodes: gone, Whole: ended})
		}
	}
	return all
}

// failedLater handles that a poll may show that nodes failed which left the job before.
func failedLater(c *state.Core, s *state.Snapshot, j *state.Job) {
	if lost := lose(c, s, j, j.Step); len(lost) > 0 {
		c.Event(j, "nodes failed", map[string]any{"lost": slurmctl.CompressNodes(lost)})
	}
}

// lose records which nodes that left a job have failed by now, and returns them. Nodes that left for another reason, such as a user's
// scontrol or scancel, are not lost. It keeps for the next polls what is still open. The losses count for the step, or for the one in
// which the nodes left if that has yet to begin again.
func lose(c *state.Core, s *state.Snapshot, j *state.Job, step int) (lost []string) {
	var open []msg.Left
	within := max(openFor, openPolls*max(c.Config.PollInterval, pace.Apart(&c.Pace)))
	for _, l := range j.Left {
		if c.Passed(s.Taken, l.Seen.Add(within)) {
			continue
		}
		down := failed(s, l.Nodes)
		if l.Whole && len(down) > 0 {
			down = l.Nodes
		}
		lost, step = append(lost, down...), max(step, l.Step)
		if l.Nodes = msg.Without(l.Nodes, down); len(l.Nodes) > 0 {
			open = append(open, l)
		}
	}
	if j.Left = open; len(lost) > 0 {
		j.Lose(step, lost)
		c.Save(j)
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
	detail := map[string]any{"step": j.Step}
	j.BeginAgain(step)
	j.Left = append(j.Left, msg.Left{Nodes: j.Nodes(), Seen: c.Snapshot.Taken})
	for i := range j.Left {
		j.Left[i].Step = step
	}
	if lost := lose(c, c.Snapshot, j, step); len(lost) > 0 {
		detail["lost"] = slurmctl.CompressNodes(lost)
	}
	c.Event(j, "requeued", detail)
}
