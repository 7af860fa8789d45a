package controller

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/metrics"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// meter begins to count.
func (c *Controller) meter() {
	c.Metrics = metrics.New(c.sight)
	before := c.slurm.Ran
	c.slurm.Ran = func(r slurmctl.Ran) {
		c.Metrics.Command(r)
		if before != nil {
			before(r)
		}
	}
}

// meterCycle counts the cycle that ends, if one is under way, and the nodes that are held.
func (c *Controller) meterCycle() {
	if !c.laps.begun.IsZero() {
		c.Metrics.Cycle(c.laps.seconds)
	}
	c.Metrics.Holding(c.view.Load().IdleNodes, time.Now())
	c.countIdle(time.Now())
}

// sight returns the published state, for a scrape.
func (c *Controller) sight() metrics.Sight {
	v := c.view.Load()
	return metrics.Sight{Status: v.Status, Jobs: v.Jobs, Strategies: c.strategies.Planning.List(), Holds: v.Holds, HeldNodes: v.HeldNodes, IdleNodes: v.IdleNodes,
		Writable: v.writable}
}

// Ready returns why nothing can be decided at present; nil: all is well.
func (c *Controller) Ready() error { return c.Metrics.Ready(time.Now()) }
