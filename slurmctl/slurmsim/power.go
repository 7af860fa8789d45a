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
	n.Down, n.Drained, n.Reboots = down, drained, false
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

// Reboot drains a node and reboots it once it has no job. It comes back when SetNode resumes it.
func (c *Cluster) Reboot(name string) {
	c.SetNode(name, false, true)
	if i, ok := c.index[name]; ok {
		c.Nodes[i].Reboots = true
	}
}

// CreateNode brings a deleted node back, as scontrol create nodename= or slurmd -Z does.
func (c *Cluster) CreateNode(name string) {
	if i, ok := c.index[name]; ok {
		c.Nodes[i].Gone = false
		c.SetNode(name, false, false)
	}
}

// DeleteNode deletes a node without jobs, as scontrol delete nodename= does: not while a reservation on it is active, and
// coming reservations lose it (measured: 22.05.8, 26.05.5).
func (c *Cluster) DeleteNode(name string) error {
	i, ok := c.index[name]
	if !ok || c.Nodes[i].Gone {
		return refusal("Invalid node name specified")
	}
	with := func(r *reservation) bool { return r.Set.has(i) }
	if c.Usage.CPUs[i] > 0 || c.Nodes[i].Freeing > 0 || slices.ContainsFunc(c.Reservations, func(r *reservation) bool { return with(r) && r.overlaps(c.Now(), c.Now().Add(1)) }) {
		return refusal("Requested nodes are busy")
	}
	for _, r := range c.Reservations {
		if with(r) {
			r.Set, r.Nodes = slices.Clone(r.Set), slices.DeleteFunc(slices.Clone(r.Nodes), func(n string) bool { return n == name })
			r.Set.drop(i)
		}
	}
	c.Nodes[i].Gone = true
	c.SetNode(name, false, false)
	return nil
}

// SetBoots sets whether a node comes up when it is powered up.
func (c *Cluster) SetBoots(name string, boots bool) {
	if i, ok := c.index[name]; ok {
		c.Nodes[i].Broken = !boots
		c.usable(i)
	}
}

// Powers calls see with the power state of each node, and whether a job has it.
func (c *Cluster) Powers(see func(node int, p slurmctl.Power, busy bool)) {
	for i := range c.Nodes {
		see(i, c.Nodes[i].PowerState, !c.Usage.Idle.has(i))
	}
}

// PowerOf returns the power state of a node, and whether it is neither down nor drained, and comes up when it is powered up.
func (c *Cluster) PowerOf(name string) (p slurmctl.Power, well bool) {
	i, ok := c.index[name]
	if !ok {
		return slurmctl.PowerOn, false
	}
	return c.Nodes[i].PowerState, c.Up.has(i) && !c.Nodes[i].Broken
}

// PowerSaving returns how nodes are switched off and on.
func (c *Cluster) PowerSaving() PowerSaving { return c.options.PowerSaving }

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
	case slurmctl.PowerDrain: // on request, whatever is excepted
		return slurmctl.PowerDown
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
