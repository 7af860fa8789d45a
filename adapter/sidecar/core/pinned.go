package core

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// A slurmctld that is started again, or reads its configuration anew, takes the first of a job's
// nodes for the one that runs the batch script, also where that is another because the first has
// been merged into the job since (all versions; build_node_details in slurmctl's source). From then
// on it does not let that node go before the job's end, and it would let the batch script's own go.
// So such a job keeps both: it gives back others, and where a step was to have one node it has two.

// pinned is the node that slurmctld takes for the batch script's though another is; "": none.
func (j *job) pinned() string {
	is := j.record.BatchHost
	if !j.mode.scriptSpansSteps || !j.runs() || j.BatchHost == "" || is == "" || is == j.BatchHost || !slices.Contains(j.nodes(), is) {
		return ""
	}
	return is
}

// bound lists the nodes that a job cannot give back before its end: the batch script's, and the
// one that slurmctld takes for it.
func (j *job) boundNodes() []string {
	if at := j.pinned(); at != "" {
		return []string{j.BatchHost, at}
	}
	return []string{j.BatchHost}
}

// awaitsPinned reports whether a job is promised the node that slurmctld does not let another one give back.
func (j *job) awaitsPinned(other *job) bool {
	at := other.pinned()
	return at != "" && slices.ContainsFunc(j.plan[min(j.Step, len(j.plan)):], func(p plannedStep) bool { return slices.Contains(p.nodes, at) })
}

// promisedTo reports whether others are promised a node, that of a pinned job, before a time from the
// origin: only a node that is in order can be promised.
func (c *Core) promisedTo(s *snapshot, o *occupancy, name string, to rank, until int64) bool {
	n, ok := s.index[name]
	if !ok || !s.nodes[n].Usable() || c.isSuspect([]string{name}) {
		return false
	}
	return slices.ContainsFunc(o.window([]int{n}, to), func(b planner.NodeBusy) bool { return b.Start < until })
}

// needs is how many nodes a job has in its present step at least, of those that it has.
func (j *job) needs() int { return max(j.Profile[j.Step-1].Nodes, len(j.boundNodes())) }

// pinnedText says of a node why it is pinned.
const pinnedText = "%s is the batch script's node for slurmctld since it was started or configured anew"

// boundFirst sorts those that it cannot give back to the front.
func (j *job) boundFirst(nodes []string) {
	for i, name := range j.boundNodes() {
		if at := slices.Index(nodes, name); at > i {
			nodes[i], nodes[at] = nodes[at], nodes[i]
		}
	}
}

// whyBound says why a job cannot give back nodes of these before its end; "": it can.
func (j *job) whyBound(nodes []string) string {
	switch at := j.pinned(); {
	case slices.Contains(nodes, j.BatchHost):
		return j.BatchHost + " runs the batch script"
	case at != "" && slices.Contains(nodes, at):
		return fmt.Sprintf(pinnedText, at)
	}
	return ""
}

// floored is its profile with room for the nodes that it cannot give back in the steps to come.
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

// heedsPinned reports whether the plan leaves to the job what slurmctld does not let go.
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

// heedPinned plans a job anew that is to keep a node that it was to give back.
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
		c.storePlan(j, nil) // it is not as the profile is now: once it can be, it is planned in followPlans
	}
}
