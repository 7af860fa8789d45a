package act

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job may ask for something about nodes that the sidecar does not know: temporary disk, sockets, a resource
// of a plugin. If Slurm does not start a job on idle nodes that were planned for it, it may start the job on
// others. Only this job then avoids these nodes.

// ShunFor is how long a job avoids a node.
const ShunFor = time.Hour

// shun makes a job avoid nodes, and reports whether enough others remain. If not, the job may use all nodes
// again.
func shun(c *state.Core, j *state.Job, nodes []string, why string) bool {
	if j.Shunned == nil {
		j.Shunned = map[string]time.Time{}
	}
	for _, n := range nodes {
		j.Shunned[n] = c.Now.Add(ShunFor)
	}
	was := j.Record.ExcNodes
	j.Excludes(adopt.Without(j, was))
	if s := c.Snapshot; s != nil {
		if others, err := slurm.EligibleBeside(c, s, j); err != nil || len(others) < j.Profile.Peak() {
			j.Excludes(was)
			j.Shunned = nil
			return false
		}
	}
	if c.Event(j, "nodes left alone", map[string]any{"nodes": slurmctl.CompressNodes(nodes), "why": why}) {
		c.LogJob(j).WithField("nodes", slurmctl.CompressNodes(nodes)).Warn("Slurm does not start the job on these idle nodes (" + why + "); others are looked for")
	}
	return true
}

// SettlePark is called when a job that Slurm did not start was parked.
func SettlePark(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if !follow.TookBack(c, j, p, o) {
		return
	}
	limit := p.Args.Limit
	if slurmctl.KindOf(limit) != slurmctl.NodesReason || j.Mode.StepsAreJobs || len(j.Plan) == 0 || !shun(c, j, j.Plan[0].Nodes, limit) {
		follow.KeepBack(c, j, limit, 0)
		return
	}
	c.StorePlan(j, nil)
	j.WaitsFor(state.Saying(state.WhyNotStarted, limit))
	c.NextCycle = c.Now
}
