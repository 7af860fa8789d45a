package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// SetNode sets a node down, drains it, or resumes it (both false). Jobs on a node that goes down
// end with NODE_FAIL.
func (c *Cluster) SetNode(name string, down, drained bool) {
	i, ok := c.index[name]
	if !ok {
		return
	}
	n := &c.nodes[i]
	n.down, n.drained = down, drained
	c.usable(i)
	if down {
		for _, j := range slices.Clone(c.active) {
			if slices.Contains(j.nodes, i) {
				finish(c, j, "NODE_FAIL")
			}
		}
	}
	c.changed()
	c.kick()
}

// SetBoots sets whether a node comes up when it is powered up.
func (c *Cluster) SetBoots(name string, boots bool) {
	if i, ok := c.index[name]; ok {
		c.nodes[i].broken = !boots
	}
}

// powerTurn changes the power state of nodes whose time has come.
func powerTurn(c *Cluster) {
	p := &c.options.PowerSaving
	if !p.on() {
		return
	}
	came := false
	for i := range c.nodes {
		n := &c.nodes[i]
		since := c.now - n.powered
		switch {
		case n.power == slurmctl.PowerUp && !n.broken && since >= p.Boot:
			n.power, came = slurmctl.PowerOn, true
		case n.power == slurmctl.PowerUp && since >= p.ResumeTimeout:
			n.power, came = slurmctl.PoweredDown, true
			c.SetNode(n.Name, true, n.drained)
		case n.power == slurmctl.PowerDown && since >= p.SuspendTimeout:
			n.power, came = slurmctl.PoweredDown, true
		case n.power == slurmctl.PowerOn && (!c.usage.idle.has(i) || n.freeing > 0 || !c.up.has(i)):
		case n.power == slurmctl.PowerOn && since >= p.SuspendTime && !slices.Contains(p.Except, n.Name):
			n.power = slurmctl.PowerDown
		default:
			continue
		}
		n.powered = c.now // also while busy
		c.usable(i)
	}
	if came {
		c.changed()
		c.kick()
	}
}

// startConfigured releases jobs whose nodes have come up: their time counts from then on.
func startConfigured(c *Cluster) {
	for _, j := range slices.Clone(c.active) {
		if j.State != slurmctl.Configuring || slices.ContainsFunc(j.nodes, func(n int) bool { return c.nodes[n].power != slurmctl.PowerOn }) {
			continue
		}
		j.State = slurmctl.Running
		j.StartTime = c.second()
		setLimit(c, j)
		launch(c, j)
		c.touch(j)
		c.event(j)
	}
}
