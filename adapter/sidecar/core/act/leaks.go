package act

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// If Slurm merges nodes into a job that ends at that moment, it loses the nodes: they stay allocated though no
// job has them. The sidecar keeps the window as small as it can (it checks right before that the base job
// runs), but the window remains. No job is planned on such nodes.

const (
	// leakAge is how long a node must have been allocated to no job: jobs end and begin between the commands of
	// one observation.
	leakAge = 10 * time.Second
	// healPause is the time between two attempts to free leaked nodes.
	healPause = 5 * time.Minute
)

// WatchLeaks finds nodes that Slurm has allocated to no job, and logs them. If the site allows it, slurmctld
// then reads its configuration again, which corrects the counts.
func WatchLeaks(c *state.Core, s *state.Snapshot) {
	if slurm.CountsStand(c) {
		return
	}
	var leaked []string
	for _, n := range s.Nodes {
		if n.CPUsAlloc == 0 || s.InUse[n.Name] {
			delete(c.Leaks, n.Name)
			continue
		}
		since, seen := c.Leaks[n.Name]
		if !seen {
			c.Leaks[n.Name] = s.Taken
		} else if c.Reached(s.Taken, since.Add(leakAge)) {
			leaked = append(leaked, n.Name)
		}
	}
	if len(leaked) == 0 {
		c.Leaked = nil
		return
	}
	nodes := slurmctl.CompressNodes(leaked)
	if !slices.Equal(leaked, c.Leaked) {
		c.Leaked = leaked
		c.Log.WithField("nodes", nodes).Warn("Slurm has these nodes allocated to no job; scontrol reconfigure frees them")
		c.Event(nil, "leak", map[string]any{"nodes": nodes})
	}
	if !c.Config.HealLeaks || !c.Reached(s.Taken, c.Healed.Add(healPause)) {
		return
	}
	c.Healed = s.Taken
	c.Ask(nil, "reconfigure", state.KindReconfigure, msg.Task{Command: msg.Reconfigure{}}, state.Args{What: nodes})
}

// SettleReconfigure is called when leaked nodes were freed, or when that failed.
func SettleReconfigure(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err != nil {
		c.Log.WithError(o.Err).Warn("cannot free leaked nodes")
		return
	}
	clear(c.Shrunk)
	c.Log.WithField("nodes", p.Args.What).Info("leaked nodes freed: slurmctld has read its configuration again")
	c.Event(nil, "leak healed", map[string]any{"nodes": p.Args.What})
}
