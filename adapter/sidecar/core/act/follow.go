package act

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

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
