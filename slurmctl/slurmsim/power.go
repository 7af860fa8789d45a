package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// SetNode sets a node down, drains it, or resumes it (both false). Jobs on a node that goes down
// end with NODE_FAIL.
func (c *Cluster) SetNode(name string, down, drained bool) {
	i, ok := c.index[name]
	if !ok {
		return
	}
	n := &c.Nodes[i]
	n.Down, n.Drained = down, drained
	c.usable(i)
	if down {
		for _, j := range slices.Clone(c.Active) {
			if slices.Contains(j.Nodes, i) {
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
		c.Nodes[i].Broken = !boots
		c.usable(i)
	}
}

// powerTurn changes the power state of nodes whose time has come.
func powerTurn(c *Cluster) {
	if !c.options.PowerSaving.on() {
		return
	}
	came := false
	for i := range c.Nodes {
		n := &c.Nodes[i]
		was, busy := n.PowerState, !c.Usage.Idle.has(i) || n.Freeing > 0 || !c.Up.has(i)
		n.PowerState = nextPower(&c.options.PowerSaving, n, c.Moment-n.Powered, busy)
		switch {
		case was == slurmctl.PowerOn && busy:
		case n.PowerState == was:
			continue
		case was == slurmctl.PowerUp && n.PowerState == slurmctl.PoweredDown: // it did not come up in time
			c.SetNode(n.Name, true, n.Drained)
		}
		came = came || n.PowerState != was && was != slurmctl.PowerOn
		n.Powered = c.Moment // also while busy
		c.usable(i)
	}
	if came {
		c.changed()
		c.kick()
	}
}

// nextPower returns the power state of a node that has had its state for that long.
func nextPower(p *PowerSaving, n *node, since time.Duration, busy bool) slurmctl.Power {
	switch n.PowerState {
	case slurmctl.PowerUp:
		if !n.Broken && since >= p.Boot {
			return slurmctl.PowerOn
		}
		if since >= p.ResumeTimeout {
			return slurmctl.PoweredDown
		}
	case slurmctl.PowerDown:
		if since >= p.SuspendTimeout {
			return slurmctl.PoweredDown
		}
	case slurmctl.PowerOn:
		if !busy && since >= p.SuspendTime && !slices.Contains(p.Except, n.Name) {
			return slurmctl.PowerDown
		}
	}
	return n.PowerState
}

// startConfigured releases jobs whose nodes have come up: their time counts from then on.
func startConfigured(c *Cluster) {
	for _, j := range slices.Clone(c.Active) {
		if j.State != slurmctl.Configuring || slices.ContainsFunc(j.Nodes, func(n int) bool { return c.Nodes[n].PowerState != slurmctl.PowerOn }) {
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
