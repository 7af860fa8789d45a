package power

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// round is the time of SuspendRate and ResumeRate.
	round = time.Minute
	// failuresCount is how long it counts that a node did not come up.
	failuresCount = time.Hour
	// leastFailures and failuresOf are how many nodes, and which part of all, may fail within that time before the sidecar
	// drains no further node, and switches none off: the fault is not theirs.
	leastFailures, failuresOf = 2, 20
)

// advise records which nodes would be off.
func advise(c *state.Core, s *state.Snapshot, v verdict) {
	p := &c.Power.ByPlan
	for name := range p.Naps {
		if _, still := v.naps[name]; !still {
			delete(p.Naps, name)
			p.Boots++
			p.Joules -= bootCosts(c, name)
		}
	}
	for _, name := range v.off {
		if before, has := p.Naps[name]; has {
			v.naps[name] = state.Nap{Since: before.Since, Until: v.naps[name].Until, IsOff: true}
		}
		p.Naps[name] = v.naps[name]
	}
}

// act switches nodes off and on, and follows those that are off.
func act(c *state.Core, s *state.Snapshot, v verdict) {
	p := &c.Power.ByPlan
	for _, name := range state.SortedKeys(p.Naps) {
		follow(c, s, name)
	}
	hold.PowerUp(c, v.due)
	hold.PowerUp(c, atOnce(c, v.wake, c.Power.Saving.ResumeRate, &p.Woken))
	var keep []string
	for _, name := range v.keep {
		if c.Now.Sub(c.Power.Kept[name]) >= c.Power.Saving.SuspendTime/2 {
			keep = append(keep, name)
		}
	}
	hold.KeepUp(c, keep)
	off := atOnce(c, msg.Without(v.off, state.SortedKeys(p.Naps)), c.Power.Saving.SuspendRate, &p.Sent)
	if len(off) == 0 || !c.Work.RoomForHolds() || !c.Ask(nil, "nodes switched off", state.KindPowerDown, msg.Task{Command: msg.PowerDown{Nodes: off}}, state.Args{}) {
		return
	}
	for _, name := range off {
		p.Naps[name] = v.naps[name]
	}
}

// follow looks whether a node is off, and ends its nap once it comes up, or if it never went off.
func follow(c *state.Core, s *state.Snapshot, name string) {
	p := &c.Power.ByPlan
	nap, power := p.Naps[name], slurmctl.PowerOn
	i, known := s.Index[name]
	if known {
		power = s.Nodes[i].Power()
	}
	late := s.Taken.Sub(nap.Since) > 2*state.PowerCycle
	switch {
	case known && (power == slurmctl.PowerDown || power == slurmctl.PoweredDown):
		nap.IsOff = true
		p.Naps[name] = nap
	case known && nap.IsOff && (power == slurmctl.PowerOn || power == slurmctl.PowerUp):
		delete(p.Naps, name)
		p.Boots++
		p.Joules -= bootCosts(c, name)
	case !known, late && (power == slurmctl.PowerOn || !s.Nodes[i].Usable()): // Slurm did not switch it off
		delete(p.Naps, name)
	}
}

// atOnce returns as many of the nodes as may go off or come up within a minute, if none did so within the last minute. A rate
// of 0 is none.
func atOnce(c *state.Core, nodes []string, rate int, last *time.Time) []string {
	if rate == 0 || len(nodes) == 0 {
		return nodes
	}
	if c.Now.Before(last.Add(round)) {
		return nil
	}
	*last = c.Now
	return nodes[:min(len(nodes), rate)]
}

// SettlePowerDown is called when Slurm was requested to switch nodes off.
func SettlePowerDown(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	nodes := state.CommandOf[msg.PowerDown](p).Nodes
	entry := c.Log.WithField("nodes", slurmctl.CompressNodes(nodes))
	if o.Err == nil {
		entry.Debug("nodes switched off")
		return
	}
	for _, name := range nodes {
		delete(c.Power.ByPlan.Naps, name)
	}
	if hold.PowerDenied(c, o.Err); c.Power.Leaves(c.Now) {
		pause(c, denied)
	}
	entry.WithError(o.Err).Warn("Slurm refuses to switch nodes off; they stay on")
}

// reportFailed drains the nodes that did not come up. If these are too many, the fault is not the nodes', and the plan
// switches no node off for a while.
func reportFailed(c *state.Core, s *state.Snapshot) {
	p, failed := &c.Power.ByPlan, c.Power.Failed
	c.Power.Failed = nil
	if len(failed) == 0 || c.Config.Power.Mode != config.PowerAct {
		return
	}
	for len(p.Failures) > 0 && c.Now.Sub(p.Failures[0]) > failuresCount {
		p.Failures = p.Failures[1:]
	}
	nodes := slurmctl.CompressNodes(failed)
	if len(p.Failures)+len(failed) > max(leastFailures, len(s.Nodes)/failuresOf) {
		p.Failures = nil
		pause(c, "too many nodes did not come up: look at ResumeProgram")
		c.Event(nil, "power left to Slurm", map[string]any{"error": "too many nodes did not come up: " + nodes, "until": c.Wall(p.Paused).Unix(), "remedy": "look at ResumeProgram, then resume the nodes: scontrol update State=RESUME NodeName=" + nodes})
		c.Log.WithField("nodes", nodes).Error("too many nodes did not come up: no node goes off by plan for an hour")
		return
	}
	if !c.Work.Room() || !c.Ask(nil, "nodes drained", state.KindDrainNodes, msg.Task{Command: msg.DrainNodes{Nodes: failed, Reason: drainReason}}, state.Args{}) {
		return
	}
	for range failed {
		p.Failures = append(p.Failures, c.Now)
	}
}

// pause lets no node go off by plan for a while.
func pause(c *state.Core, why string) {
	c.Power.ByPlan.Paused, c.Power.ByPlan.Because = c.Now.Add(failuresCount), why
}

// drainReason is the reason that Slurm shows of a node that did not come up.
const drainReason = "evoslurm: did not come up within ResumeTimeout"

// SettleDrainNodes is called when nodes that did not come up were drained, or when that failed.
func SettleDrainNodes(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	nodes := slurmctl.CompressNodes(state.CommandOf[msg.DrainNodes](p).Nodes)
	entry := c.Log.WithField("nodes", nodes)
	if o.Err != nil {
		hold.PowerDenied(c, o.Err)
		entry.WithError(o.Err).Warn("cannot drain nodes that did not come up")
		return
	}
	c.Event(nil, "nodes drained", map[string]any{"nodes": nodes, "why": "they did not come up within ResumeTimeout",
		"remedy": "look at ResumeProgram and at these nodes, then: scontrol update State=RESUME NodeName=" + nodes})
	entry.Warn("nodes drained: they did not come up within ResumeTimeout")
}
