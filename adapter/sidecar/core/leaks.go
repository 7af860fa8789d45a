package core

import (
	"slices"
	"time"

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

// watchLeaks finds nodes that Slurm has allocated to no job, and logs them. If the site allows it, slurmctld
// then reads its configuration again, which corrects the counts.
func (c *Core) watchLeaks(s *snapshot) {
	if c.countsStand() {
		return
	}
	var leaked []string
	for _, n := range s.nodes {
		if n.CPUsAlloc == 0 || s.inUse[n.Name] {
			delete(c.leaks, n.Name)
			continue
		}
		since, seen := c.leaks[n.Name]
		if !seen {
			c.leaks[n.Name] = s.taken
		} else if s.taken.Sub(since) >= leakAge {
			leaked = append(leaked, n.Name)
		}
	}
	if len(leaked) == 0 {
		c.leaked = nil
		return
	}
	nodes := slurmctl.CompressNodes(leaked)
	if !slices.Equal(leaked, c.leaked) {
		c.leaked = leaked
		c.log.WithField("nodes", nodes).Warn("Slurm has these nodes allocated to no job; scontrol reconfigure frees them")
		c.event(nil, "leak", map[string]any{"nodes": nodes})
	}
	if !c.cfg.HealLeaks || s.taken.Sub(c.healed) < healPause {
		return
	}
	c.healed = s.taken
	c.ask(nil, "reconfigure", KindReconfigure, Task{Command: Reconfigure{}}, Args{What: nodes})
}

// settleReconfigure is called when leaked nodes were freed, or when that failed.
func (c *Core) settleReconfigure(_ *job, p *Pending, o Outcome) {
	if o.Err != nil {
		c.log.WithError(o.Err).Warn("cannot free leaked nodes")
		return
	}
	c.log.WithField("nodes", p.Args.What).Info("leaked nodes freed: slurmctld has read its configuration again")
	c.event(nil, "leak healed", map[string]any{"nodes": p.Args.What})
}
