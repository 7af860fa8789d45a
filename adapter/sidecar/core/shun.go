package core

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job may ask for something about nodes that the sidecar does not know: temporary disk, sockets, a resource
// of a plugin. If Slurm does not start a job on idle nodes that were planned for it, it may start the job on
// others. Only this job then avoids these nodes.

// shunFor is how long a job avoids a node.
const shunFor = time.Hour

// shun makes a job avoid nodes, and reports whether enough others remain. If not, the job may use all nodes
// again.
func (c *Core) shun(j *job, nodes []string, why string) bool {
	if j.shunned == nil {
		j.shunned = map[string]time.Time{}
	}
	for _, n := range nodes {
		j.shunned[n] = c.now.Add(shunFor)
	}
	was := j.record.ExcNodes
	j.record.ExcNodes = j.without(was)
	if s := c.snapshot; s != nil {
		if others, err := s.eligible(c.recordFor(s, j), j.gres); err != nil || len(others) < j.Profile.Peak() {
			j.record.ExcNodes, j.shunned = was, nil
			return false
		}
	}
	c.event(j, "nodes left alone", map[string]any{"nodes": slurmctl.CompressNodes(nodes), "why": why})
	c.logJob(j).WithField("nodes", slurmctl.CompressNodes(nodes)).Warn("Slurm does not start the job on these idle nodes (" + why + "); others are looked for")
	return true
}

// readmit removes nodes whose time is up.
func (j *job) readmit(now time.Time) {
	maps.DeleteFunc(j.shunned, func(_ string, until time.Time) bool { return until.Before(now) })
}

// without adds the nodes that the job avoids to the nodes that it excludes itself.
func (j *job) without(excluded []string) []string {
	if len(j.shunned) == 0 {
		return excluded
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(excluded, slices.Collect(maps.Keys(j.shunned))))))
}
