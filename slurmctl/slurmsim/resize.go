package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// merge returns an expander's nodes to the job that it was allocated for (scontrol update JobId=K
// NumNodes=0).
func merge(c *Cluster, k *job) error {
	switch base := c.Jobs[k.Expands]; {
	case !c.options.PermitJobExpansion:
		return refusal("Requested operation not supported on this system")
	case k.Expands == 0:
		return refusal("Node count specification invalid")
	case k.State == slurmctl.Pending:
		return refusal("Node count specification invalid")
	case k.State != slurmctl.Running:
		return refusal("Job has already finished")
	case c.options.Contain, k.Request.Script != "":
		return refusal("Job step already exists")
	case len(c.kinds) > 0 && (k.whole() || len(k.Request.GRES) > 0):
		return refusal("Unspecified error") // the expander has GRES allocated
	case base == nil, base.State != slurmctl.Running:
		// nodes of a job that is gone are lost until reconfigure
		c.give(k, k.Nodes)
		for _, n := range k.Nodes {
			c.Nodes[n].Leaked = true
			c.usable(n)
		}
		endEmpty(c, k)
		return nil
	case locked(&c.options, base):
		return errDBIndex()
	default:
		c.give(k, k.Nodes)
		c.take(base, k.Nodes)
		base.Nodes = slices.Concat(base.Nodes, k.Nodes)
		base.Resized = true
		c.count(base)
		c.touch(base)
		c.event(base)
		endEmpty(c, k)
	}
	c.kick()
	return nil
}

// endEmpty ends an expander without nodes.
func endEmpty(c *Cluster, k *job) {
	c.Merged = append(c.Merged, k)
	k.Nodes, k.Set = []int{}, newNodeSet(len(c.Nodes))
	k.Epoch++
	k.EndTime = c.second()
	closeRecord(c, k, slurmctl.Completed)
}

// shrink leaves a running job only these nodes.
func shrink(c *Cluster, j *job, keep []string) error {
	kept, err := mayShrink(c, j, keep)
	if err != nil {
		return err
	}
	var stay, leave []int
	for _, n := range j.Nodes {
		if kept.has(n) {
			stay = append(stay, n)
		} else {
			leave = append(leave, n)
		}
	}
	if len(stay) < kept.count() {
		return refusal("Invalid node name specified")
	}
	c.give(j, leave)
	j.Nodes, j.Resized = stay, true
	if j.Gone == nil {
		j.Gone = map[int]time.Duration{}
	}
	for _, n := range leave {
		j.Gone[n] = c.Moment
		c.Nodes[n].Shrunk = c.Nodes[n].Shrunk || j.whole()
	}
	c.count(j)
	c.touch(j)
	c.event(j)
	c.kick()
	if j.Request.Script != "" && slices.Contains(leave, j.ScriptNode) {
		finish(c, j, slurmctl.Failed) // its batch script was killed with the node
	}
	return nil
}

// mayShrink returns the nodes to keep, or why the job cannot shrink to them.
func mayShrink(c *Cluster, j *job, keep []string) (nodeSet, error) {
	switch {
	case c.options.DisableShrink:
		return nil, refusal("Requested operation is presently disabled")
	case j.Ended() || j.State == slurmctl.Completing:
		return nil, refusal("Job has already finished")
	case j.State == slurmctl.Pending:
		return nil, refusal("Requested operation not supported on this system")
	case locked(&c.options, j):
		return nil, errDBIndex()
	}
	kept, err := c.named(keep)
	switch {
	case err != nil:
		return nil, err
	case len(keep) == 0:
		return nil, refusal("Node count specification invalid")
	case j.Request.Script != "" && !kept.has(j.HostNode):
		return nil, refusal("Invalid node name specified") // the batch host cannot be removed
	}
	return kept, nil
}

// takeBatchHosts makes the first node of every job its batch host, as slurmctld does after a start
// or reconfiguration (build_node_details).
func takeBatchHosts(c *Cluster) {
	for _, id := range sortedIDs(c.Jobs) {
		if j := c.Jobs[id]; j.State == slurmctl.Running && len(j.Nodes) > 0 && j.HostNode != slices.Min(j.Nodes) {
			j.HostNode = slices.Min(j.Nodes)
			c.touch(j)
		}
	}
}

// locked reports whether the job can no longer be changed: 22.05 without slurmdbd, after its first
// resize.
func locked(o *Options, j *job) bool { return j.Resized && !o.Accounting }
