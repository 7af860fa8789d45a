package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// PowerSaving is how Slurm switches idle nodes off and on; zero: it does not.
type PowerSaving struct {
	SuspendTime    time.Duration // idle for so long, a node is switched off
	SuspendTimeout time.Duration // it takes so long to go off, and nobody has it
	ResumeTimeout  time.Duration // after so long without coming up it is down
	Boot           time.Duration // how long one takes to come up
	Except         []string      // nodes that stay on
	Off            []string      // nodes that are off at the start
}

// on reports whether there is power saving.
func (p *PowerSaving) on() bool { return p.SuspendTime > 0 }

// powerLook is how often Slurm looks for nodes to switch off (power_save_interval).
const powerLook = time.Second

// SetBoots says whether a node comes up when it is switched on.
func (c *Cluster) SetBoots(name string, boots bool) {
	if i, ok := c.index[name]; ok {
		c.nodes[i].broken = !boots
	}
}

// switchOn begins to switch nodes on that are off.
func (c *Cluster) switchOn(nodes []int) {
	for _, i := range nodes {
		if n := &c.nodes[i]; n.power == slurmctl.PoweredDown {
			n.power, n.powered = slurmctl.PowerUp, c.now
			c.usable(i)
		}
	}
}

// powerTurn is what becomes of nodes by time alone.
func (c *Cluster) powerTurn() {
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
		n.powered = c.now // also while it is busy
		c.usable(i)
	}
	if came {
		c.changed()
		c.kick()
	}
}

// configured lets jobs go whose nodes have come up: their time counts from then on.
func (c *Cluster) configured() {
	for _, j := range slices.Clone(c.active) {
		if j.State != slurmctl.Configuring || slices.ContainsFunc(j.nodes, func(n int) bool { return c.nodes[n].power != slurmctl.PowerOn }) {
			continue
		}
		j.State = slurmctl.Running
		j.StartTime = c.second()
		c.limit(j)
		c.launch(j)
		c.touch(j)
		c.event(j)
	}
}

// marks are sinfo's for a node's power.
var marks = map[slurmctl.Power]string{slurmctl.PowerUp: "#", slurmctl.PoweredDown: "~", slurmctl.PowerDown: "%"}
