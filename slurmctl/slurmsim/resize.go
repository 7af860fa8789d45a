package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// merge gives an expander's nodes to the job that it was allocated for (scontrol
// update JobId=K NumNodes=0).
func (c *Cluster) merge(k *job) error {
	switch base := c.jobs[k.expands]; {
	case !c.options.PermitJobExpansion:
		return refusal("Requested operation not supported on this system")
	case k.expands == 0:
		return refusal("Node count specification invalid")
	case k.State == slurmctl.Pending:
		return refusal("Node count specification invalid")
	case k.State != slurmctl.Running:
		return refusal("Job has already finished")
	case c.options.Contain, k.request.Script != "":
		return refusal("Job step already exists")
	case base == nil, base.State != slurmctl.Running:
		// nodes of a job that is no more: they are lost until reconfigure
		for _, n := range k.nodes {
			c.give(n, k)
			c.nodes[n].leaked = true
		}
		c.empty(k)
		return nil
	case c.locked(base):
		return errDBIndex()
	default:
		for _, n := range k.nodes {
			c.give(n, k)
			c.take(n, base)
		}
		base.nodes = append(base.nodes, k.nodes...)
		base.resized = true
		c.show(base)
		c.empty(k)
	}
	c.kick()
	return nil
}

// empty ends an expander that has no nodes any more.
func (c *Cluster) empty(k *job) {
	k.nodes = nil
	k.epoch++
	k.EndTime = c.second()
	c.show(k)
	c.close(k, slurmctl.Completed)
}

// shrink leaves a running job these nodes.
func (c *Cluster) shrink(j *job, keep []string) error {
	if c.options.DisableShrink {
		return refusal("Requested operation is presently disabled")
	}
	switch {
	case j.Ended() || j.State == slurmctl.Completing:
		return refusal("Job has already finished")
	case j.State == slurmctl.Pending:
		return refusal("Requested operation not supported on this system")
	case c.locked(j):
		return errDBIndex()
	case j.BatchHost != "" && !slices.Contains(keep, j.BatchHost):
		return refusal("Invalid node name specified") // the batch host cannot be removed
	}
	for _, name := range keep {
		if n, ok := c.index[name]; !ok || !slices.Contains(j.nodes, n) {
			return refusal("Invalid node name specified")
		}
	}
	j.nodes = slices.DeleteFunc(slices.Clone(j.nodes), func(n int) bool {
		if slices.Contains(keep, c.nodes[n].name) {
			return false
		}
		c.give(n, j)
		return true
	})
	j.resized = true
	c.show(j)
	c.touch()
	c.kick()
	return nil
}

// locked says whether the job can be changed no more: 22.05 without slurmdbd, after
// its first resize.
func (c *Cluster) locked(j *job) bool { return j.resized && !c.options.Accounting }

func errDBIndex() error {
	return refusal("Job update not available right now, the DB index is being set, try again in a bit")
}
