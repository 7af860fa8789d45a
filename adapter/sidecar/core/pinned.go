package core

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// When slurmctld starts again or rereads its configuration, it takes the first of a job's nodes for the node
// of the batch script. That is wrong if the first node was merged into the job later (all versions;
// build_node_details in slurmctl's source). From then on, slurmctld does not release that node before the
// job's end, but would release the batch script's own node. So such a job keeps both nodes and gives back
// others. A step planned for one node has two.

// pinned returns the node that slurmctld mistakes for the batch script's node, or "" if there is none.
func (j *job) pinned() string {
	is := j.record.BatchHost
	if !j.mode.scriptSpansSteps || !j.runs() || j.BatchHost == "" || is == "" || is == j.BatchHost || !slices.Contains(j.nodes(), is) {
		return ""
	}
	return is
}

// boundNodes lists the nodes that a job cannot give back before its end: the batch script's node, and the node
// that slurmctld mistakes for it.
func (j *job) boundNodes() []string {
	if at := j.pinned(); at != "" {
		return []string{j.BatchHost, at}
	}
	return []string{j.BatchHost}
}

// awaitsPinned reports whether a job is promised the node that slurmctld does not let another job give back.
func (j *job) awaitsPinned(other *job) bool {
	at := other.pinned()
	return at != "" && slices.ContainsFunc(j.plan[min(j.Step, len(j.plan)):], func(p plannedStep) bool { return slices.Contains(p.nodes, at) })
}

// promisedTo reports whether a pinned job's node is promised to other jobs before a time, in seconds from the
// origin. Only a usable node can be promised.
func (c *Core) promisedTo(s *snapshot, o *occupancy, name string, to rank, until int64) bool {
	n, ok := s.index[name]
	if !ok || !s.nodes[n].Usable() || c.isSuspect([]string{name}) {
		return false
	}
	return slices.ContainsFunc(o.window([]int{n}, to), func(b planner.NodeBusy) bool { return b.Start < until })
}

// needs returns how many of its nodes a job needs at least in its current step.
func (j *job) needs() int { return max(j.Profile[j.Step-1].Nodes, len(j.boundNodes())) }

// pinnedText explains why a node is pinned.
const pinnedText = "slurmctld takes %s for the batch script's node since it was restarted or reconfigured"

// boundFirst moves the nodes that the job cannot give back to the front.
func (j *job) boundFirst(nodes []string) {
	for i, name := range j.boundNodes() {
		if at := slices.Index(nodes, name); at > i {
			nodes[i], nodes[at] = nodes[at], nodes[i]
		}
	}
}

// whyBound returns why a job cannot give back all of these nodes before its end, or "" if it can.
func (j *job) whyBound(nodes []string) string {
	switch at := j.pinned(); {
	case slices.Contains(nodes, j.BatchHost):
		return j.BatchHost + " runs the batch script"
	case at != "" && slices.Contains(nodes, at):
		return fmt.Sprintf(pinnedText, at)
	}
	return ""
}

// floored returns its profile with room in the coming steps for the nodes that it cannot give back.
func (j *job) floored() planner.Profile {
	least := len(j.boundNodes())
	if !j.mode.resizes || !slices.ContainsFunc(j.Profile[j.Step:], func(s planner.Step) bool { return s.Nodes < least }) {
		return j.Profile
	}
	p := slices.Clone(j.Profile)
	for k := j.Step; k < len(p); k++ {
		p[k].Nodes = max(p[k].Nodes, least)
	}
	return p
}

// heedsPinned reports whether the plan leaves the job the node that slurmctld does not release.
func (j *job) heedsPinned() bool {
	at := j.pinned()
	if at == "" {
		return true
	}
	for k := j.Step; k < len(j.plan); k++ {
		if !slices.Contains(j.plan[k].nodes, at) {
			return false
		}
	}
	return slices.Equal(j.floored(), j.Profile)
}

// heedPinned replans a job that must keep a node that it was planned to give back.
func (c *Core) heedPinned(s *snapshot, j *job, now int64) {
	at := j.pinned()
	detail := map[string]any{"why": j.whyBound([]string{at})}
	if p := j.floored(); !slices.Equal(p, j.Profile) {
		detail["profile"] = p.String()
		j.Profile = p
		c.changeProfile(j)
		c.save(j)
	}
	c.logJob(j).WithField("node", at).Warn("a node stays with the job to its end: " + j.whyBound([]string{at}))
	c.event(j, "node kept", detail)
	if j.lapsed() {
		return
	}
	if c.refit(s, j, now, "slurmctld does not let "+at+" go") != "" {
		c.storePlan(j, nil) // the plan does not match the profile now: followPlans plans it once that is possible
	}
}
