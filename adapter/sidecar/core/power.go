package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm switches off unused nodes, including held ones, and switches them on for a job, which is CONFIGURING
// until they are up. That would delay a growth. So nodes that are off count as free from the latest time at
// which they can be up, and the nodes of a hold are switched on that long before. That applies to a start as
// well, but a start is replanned with every poll: it comes as soon as the nodes are up. The sidecar keeps
// nodes on that could no longer be switched off and on in time.
//
// If the sidecar may not switch nodes on (as an operator), Slurm does: a job that begins on nodes that are off
// is late by the time that they take.

const (
	// powerCycle is how often slurmctld checks the nodes' power: every ten seconds, whatever the timeouts.
	powerCycle = 10 * time.Second
	// powerLead is how much earlier than necessary the sidecar switches nodes on: polls may be late.
	powerLead = 15 * time.Second
	// powerDenied is how long the sidecar waits before it tries again what Slurm denied.
	powerDenied = 5 * time.Minute
)

// power holds what is known about nodes that are switched off and on.
type power struct {
	saving slurmctl.PowerSaving
	on     bool                 // Slurm saves power
	since  map[string]powerSeen // nodes that are not simply on
	asked  map[string]time.Time // when nodes were last requested to come up
	kept   map[string]time.Time // when nodes were last kept on
	denied time.Time            // no requests before this time
}

type powerSeen struct {
	power slurmctl.Power
	since time.Time
}

// setSaving is called when Slurm's configuration was read.
func (p *power) setSaving(cfg slurmctl.Config) {
	p.saving, p.on = cfg.PowerSaving()
	if p.since == nil {
		p.since, p.asked, p.kept = map[string]powerSeen{}, map[string]time.Time{}, map[string]time.Time{}
	}
}

// up returns how long a node that is off may take to come up, from the request on.
func (p *power) up() time.Duration { return p.saving.ResumeTimeout + powerCycle }

// down returns how long a node that goes off cannot be requested to come up.
func (p *power) down() time.Duration { return p.saving.SuspendTimeout + powerCycle }

// leaves reports whether Slurm must switch nodes on, since the sidecar may not.
func (p *power) leaves(now time.Time) bool { return now.Before(p.denied) }

// watch records since when nodes have their power state. It returns the nodes that should have come up and are
// not usable.
func (p *power) watch(s *snapshot) (failed []string) {
	for _, n := range s.nodes {
		now, before := n.Power(), p.since[n.Name]
		if !n.Usable() {
			if _, asked := p.asked[n.Name]; asked || before.power == slurmctl.PowerUp {
				failed = append(failed, n.Name)
			}
		}
		switch {
		case now == slurmctl.PowerOn || !n.Usable():
			delete(p.since, n.Name)
			delete(p.asked, n.Name)
		case now != before.power:
			p.since[n.Name] = powerSeen{now, s.taken}
		}
		if at, asked := p.asked[n.Name]; asked && s.taken.Sub(at) > p.up() {
			delete(p.asked, n.Name) // request it again
		}
	}
	return failed
}

// ready returns the latest Unix second at which a usable node is up: now if it is on, never if it is not known
// to come up.
func (p *power) ready(n slurmctl.Node, taken time.Time) int64 {
	seen := p.since[n.Name]
	if seen.power != n.Power() {
		seen.since = taken // not watched yet
	}
	at := taken
	switch state := n.Power(); {
	case state == slurmctl.PowerOn:
	case !p.on:
		return planner.Forever // a reboot, or nothing switches it on
	case state == slurmctl.PowerUp:
		if at = seen.since.Add(p.up()); taken.After(at.Add(powerCycle)) {
			return planner.Forever // Slurm should have marked it down
		}
	case state == slurmctl.PoweredDown:
		if asked, ok := p.asked[n.Name]; ok {
			at = asked.Add(p.up())
		} else if !p.leaves(taken) {
			at = taken.Add(p.up())
		}
	case state == slurmctl.PowerDown:
		at = Later(seen.since.Add(p.down()), taken).Add(p.up())
	default:
		at = taken.Add(p.down() + p.up())
	}
	return Later(at, taken).Unix()
}

// after returns how many seconds after its last job a node is available again: a node that Slurm is about to
// switch off goes off first.
func (p *power) after(n slurmctl.Node) int64 {
	if p.on && n.Power() == slurmctl.PowerDrain {
		return int64((p.down() + p.up()) / time.Second)
	}
	return 0
}

// watchPower is called with every poll. It logs nodes that do not come up. Plans that have them are remade, as
// for any node that is down.
func (c *Core) watchPower(s *snapshot) {
	s.leftToSlurm = c.power.on && c.power.leaves(s.taken)
	failed := c.power.watch(s)
	if len(failed) == 0 {
		return
	}
	nodes := slurmctl.CompressNodes(failed)
	c.log.WithField("nodes", nodes).Warn("nodes did not power up, looking for others")
	for _, j := range c.active {
		if mine := common(failed, j.planned()); len(mine) > 0 {
			c.event(j, "nodes did not come up", map[string]any{"nodes": slurmctl.CompressNodes(mine)})
		}
	}
}

// switchNodes switches on the nodes of holds that will be needed. It keeps nodes on that would be switched off
// too late to be on again in time.
func (c *Core) switchNodes(s *snapshot) {
	p, now := &c.power, c.now
	if !p.on || p.leaves(now) {
		return
	}
	var off, on []string
	for _, h := range c.wantedHolds(now.Unix()) {
		r, held := c.holdFor(h.job, h.step)
		if left := time.Unix(h.start, 0).Sub(now); !held || left > p.up()+p.down()+powerLead {
			continue
		}
		down, idle, waits := p.toSwitch(s, h, r.Nodes, now)
		off, on = append(off, down...), append(on, idle...)
		if waits && h.step == 1 && h.job.State == row.Queued {
			h.job.reason = because(whySwitchingOn)
		}
	}
	off, on = sortedSet(off), sortedSet(on)
	c.changePower(KindPowerUp, PowerUp{off}, off, "nodes switched on", p.asked)
	c.changePower(KindKeepUp, KeepUp{on}, on, "nodes kept on", p.kept)
}

// toSwitch returns which nodes of a hold must be switched on now, and which ones kept on. It also reports
// whether the hold waits for nodes that are not on.
func (p *power) toSwitch(s *snapshot, h hold, held []string, now time.Time) (off, on []string, waits bool) {
	left := time.Unix(h.start, 0).Sub(now)
	for _, name := range common(h.nodes, held) {
		i, known := s.index[name]
		if !known || !s.nodes[i].Usable() || s.inUse[name] {
			continue
		}
		switch s.nodes[i].Power() {
		case slurmctl.PowerOn:
			if p.saving.SuspendTime > 0 && now.Sub(p.kept[name]) >= p.saving.SuspendTime/2 {
				on = append(on, name)
			}
		case slurmctl.PoweredDown:
			waits = true
			if _, asked := p.asked[name]; !asked && left <= p.up()+powerLead {
				off = append(off, name)
			}
		default:
			waits = true
		}
	}
	return off, on, waits
}

// sortedSet returns names in order, each once. It modifies its argument.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// changePower asks Slurm to switch nodes on or to keep them on, and records when.
func (c *Core) changePower(kind Kind, do Command, nodes []string, what string, asked map[string]time.Time) {
	if len(nodes) == 0 || !c.work.room() || !c.ask(nil, what, kind, Task{Command: do}, Args{What: what}) {
		return
	}
	for _, n := range nodes {
		asked[n] = c.now
	}
}

// settlePowerUp is called when nodes were switched on, or when that failed.
func (c *Core) settlePowerUp(_ *job, p *Pending, o Outcome) {
	c.powerChanged(p, o, commandOf[PowerUp](p).Nodes, c.power.asked)
}

// settleKeepUp is called when nodes were kept on, or when that failed.
func (c *Core) settleKeepUp(_ *job, p *Pending, o Outcome) {
	c.powerChanged(p, o, commandOf[KeepUp](p).Nodes, c.power.kept)
}

// powerChanged removes the record of the request if Slurm refused it.
func (c *Core) powerChanged(p *Pending, o Outcome, nodes []string, asked map[string]time.Time) {
	entry := c.log.WithField("nodes", slurmctl.CompressNodes(nodes))
	if o.Err == nil {
		entry.Debug(p.Args.What)
		return
	}
	for _, n := range nodes {
		delete(asked, n)
	}
	if errors.Is(o.Err, slurmctl.ErrAccessDenied) {
		c.power.denied = c.now.Add(powerDenied)
		c.event(nil, "power left to Slurm", map[string]any{"error": o.Err.Error()})
	}
	entry.WithError(o.Err).Warn("Slurm refuses to switch nodes on or keep them on; growths onto nodes that are off will be late")
}

// awaited returns in words which state of the nodes makes a job wait, or `otherwise` if their state is not the
// reason.
func (s *snapshot) awaited(names []string, otherwise string) string {
	if text := s.switching(names); text != "" {
		return text
	}
	var out, states []string
	for _, name := range names {
		i, known := s.index[name]
		if !known || s.nodes[i].Usable() {
			continue
		}
		out = append(out, name)
		if state := s.nodes[i].Unusable(); !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	if len(out) == 0 {
		return otherwise
	}
	return fmt.Sprintf("waits for %s (%s)", slurmctl.CompressNodes(out), strings.Join(states, ", "))
}

// switching returns in words how many of the nodes are off, or "" if none is.
func (s *snapshot) switching(names []string) string {
	off := 0
	for _, name := range names {
		if i, ok := s.index[name]; ok && s.nodes[i].Usable() && !s.nodes[i].Awake() {
			off++
		}
	}
	if off == 0 {
		return ""
	}
	return fmt.Sprintf("waits for %d nodes that are being switched on", off)
}
