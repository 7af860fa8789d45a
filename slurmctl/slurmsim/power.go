package slurmsim

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// PowerSaving describes how Slurm powers idle nodes down and up; zero if it does not.
type PowerSaving struct {
	SuspendTime    time.Duration // how long a node is idle before it powers down
	SuspendTimeout time.Duration // how long it takes to power down, unusable by jobs
	ResumeTimeout  time.Duration // how long it may take to power up before it is set down
	Boot           time.Duration // how long it takes to power up
	Except         []string      // nodes that stay on
	Off            []string      // nodes that are off at the start
}

// on reports whether power saving is configured.
func (p *PowerSaving) on() bool { return p.SuspendTime > 0 }

// powerLook is how often Slurm looks for nodes to power down (power_save_interval).
const powerLook = time.Second

// SetBoots sets whether a node comes up when it is powered up.
func (c *Cluster) SetBoots(name string, boots bool) {
	if i, ok := c.index[name]; ok {
		c.nodes[i].broken = !boots
	}
}

// switchOn starts to power up nodes that are off.
func (c *Cluster) switchOn(nodes []int) {
	for _, i := range nodes {
		if n := &c.nodes[i]; n.power == slurmctl.PoweredDown {
			n.power, n.powered = slurmctl.PowerUp, c.now
			c.usable(i)
		}
	}
}

// powerTurn changes the power state of nodes whose time has come.
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
		n.powered = c.now // also while busy
		c.usable(i)
	}
	if came {
		c.changed()
		c.kick()
	}
}

// configured releases jobs whose nodes have come up: their time counts from then on.
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

// marks maps power states to sinfo's marks.
var marks = map[slurmctl.Power]string{slurmctl.PowerUp: "#", slurmctl.PoweredDown: "~", slurmctl.PowerDown: "%"}
