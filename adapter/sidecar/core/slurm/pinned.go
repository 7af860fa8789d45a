package slurm

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
)

// When slurmctld starts again or rereads its configuration, it takes the first of a job's nodes for the node
// of the batch script. That is wrong if the first node was merged into the job later (all versions;
// build_node_details in slurmctl's source). From then on, slurmctld does not release that node before the
// job's end, but would release the batch script's own node. So such a job keeps both nodes and gives back
// others. A step planned for one node has two.

// Pinned returns the node that slurmctld mistakes for the batch script's node, or "" if there is none.
func Pinned(j *state.Job) string {
	is := j.Record.BatchHost
	if !j.Mode.ScriptSpansSteps || !j.Runs() || j.BatchHost == "" || is == "" || is == j.BatchHost || !slices.Contains(j.Nodes(), is) {
		return ""
	}
	return is
}

// boundNodes lists the nodes that a job cannot give back before its end: the batch script's node, and the node
// that slurmctld mistakes for it.
func boundNodes(j *state.Job) []string {
	if at := Pinned(j); at != "" {
		return []string{j.BatchHost, at}
	}
	return []string{j.BatchHost}
}

// AwaitsPinned reports whether a job is promised the node that slurmctld does not let another job give back.
func AwaitsPinned(j *state.Job, other *state.Job) bool {
	at := Pinned(other)
	return at != "" && slices.ContainsFunc(j.Plan[min(j.Step, len(j.Plan)):], func(p msg.PlannedStep) bool { return slices.Contains(p.Nodes, at) })
}

// PromisedTo reports whether a pinned job's node is promised to other jobs before a time, in seconds from the
// origin. Only a usable node can be promised.
func PromisedTo(c *state.Core, s *state.Snapshot, o *msg.Occupancy, name string, to msg.Rank, until int64) bool {
	n, ok := s.Index[name]
	if !ok || !s.Nodes[n].Usable() || IsSuspect(c, []string{name}) {
		return false
	}
	return slices.ContainsFunc(o.Window([]int{n}, to), func(b planner.NodeBusy) bool { return b.Start < until })
}

// Needs returns how many of its nodes a job needs at least in its current step.
func Needs(j *state.Job) int { return max(j.Profile[j.Step-1].Nodes, len(boundNodes(j))) }

// PinnedText explains why a node is pinned.
const PinnedText = "slurmctld takes %s for the batch script's node since it was restarted or reconfigured"

// BoundFirst moves the nodes that the job cannot give back to the front.
func BoundFirst(j *state.Job, nodes []string) {
	for i, name := range boundNodes(j) {
		if at := slices.Index(nodes, name); at > i {
			nodes[i], nodes[at] = nodes[at], nodes[i]
		}
	}
}

// WhyBound returns why a job cannot give back all of these nodes before its end, or "" if it can.
func WhyBound(j *state.Job, nodes []string) string {
	switch at := Pinned(j); {
	case slices.Contains(nodes, j.BatchHost):
		return j.BatchHost + " runs the batch script"
	case at != "" && slices.Contains(nodes, at):
		return fmt.Sprintf(PinnedText, at)
	}
	return ""
}

// Floored returns its profile with room in the coming steps for the nodes that it cannot give back.
func Floored(j *state.Job) planner.Profile {
	least := len(boundNodes(j))
	if !j.Mode.Resizes || !slices.ContainsFunc(j.Profile[j.Step:], func(s planner.Step) bool { return s.Nodes < least }) {
		return j.Profile
	}
	p := slices.Clone(j.Profile)
	for k := j.Step; k < len(p); k++ {
		p[k].Nodes = max(p[k].Nodes, least)
	}
	return p
}

// HeedsPinned reports whether the plan leaves the job the node that slurmctld does not release.
func HeedsPinned(j *state.Job) bool {
	at := Pinned(j)
	if at == "" {
		return true
	}
	for k := j.Step; k < len(j.Plan); k++ {
		if !slices.Contains(j.Plan[k].Nodes, at) {
			return false
		}
	}
	return slices.Equal(Floored(j), j.Profile)
}
