package core

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job may ask for what the sidecar does not know of nodes: temporary disk, sockets, a
// resource of a plugin. What Slurm does not start on idle nodes that were planned for it, it
// starts on others perhaps: these are left alone by this job, and by no one else.

// shunFor is for how long.
const shunFor = time.Hour

// shun has nodes left alone by a job, and reports whether it has enough others. If it has
// not, all are tried again.
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

// readmit forgets nodes whose time is up.
func (j *job) readmit(now time.Time) {
	maps.DeleteFunc(j.shunned, func(_ string, until time.Time) bool { return until.Before(now) })
}

// without adds the nodes that are left alone to those that the job excludes itself.
func (j *job) without(excluded []string) []string {
	if len(j.shunned) == 0 {
		return excluded
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(excluded, slices.Collect(maps.Keys(j.shunned))))))
}
