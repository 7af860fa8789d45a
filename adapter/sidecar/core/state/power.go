package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
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
	// PowerLead is how much earlier than necessary the sidecar switches nodes on: polls may be late.
	PowerLead = 15 * time.Second
	// PowerDenied is how long the sidecar waits before it tries again what Slurm denied.
	PowerDenied = 5 * time.Minute
)

// Power holds what is known about nodes that are switched off and on.
type Power struct {
	Saving slurmctl.PowerSaving
	On     bool                 // Slurm saves power
	Since  map[string]powerSeen // nodes that are not simply on
	Asked  map[string]time.Time // when nodes were last requested to come up
	Kept   map[string]time.Time // when nodes were last kept on
	Denied time.Time            // no requests before this time
}

type powerSeen struct {
	Power slurmctl.Power
	Since time.Time
}

// SetSaving is called when Slurm's configuration was read.
func (p *Power) SetSaving(cfg slurmctl.Config) {
	p.Saving, p.On = cfg.PowerSaving()
	if p.Since == nil {
		p.Since, p.Asked, p.Kept = map[string]powerSeen{}, map[string]time.Time{}, map[string]time.Time{}
	}
}

// Up returns how long a node that is off may take to come up, from the request on.
func (p *Power) Up() time.Duration { return p.Saving.ResumeTimeout + powerCycle }

// Down returns how long a node that goes off cannot be requested to come up.
func (p *Power) Down() time.Duration { return p.Saving.SuspendTimeout + powerCycle }

// Leaves reports whether Slurm must switch nodes on, since the sidecar may not.
func (p *Power) Leaves(now time.Time) bool { return now.Before(p.Denied) }

// Watch records since when nodes have their power state. It returns the nodes that should have come up and are
// not usable.
func (p *Power) Watch(s *Snapshot) (failed []string) {
	for _, n := range s.Nodes {
		now, before := n.Power(), p.Since[n.Name]
		if !n.Usable() {
			if _, asked := p.Asked[n.Name]; asked || before.Power == slurmctl.PowerUp {
				failed = append(failed, n.Name)
			}
		}
		switch {
		case now == slurmctl.PowerOn || !n.Usable():
			delete(p.Since, n.Name)
			delete(p.Asked, n.Name)
		case now != before.Power:
			p.Since[n.Name] = powerSeen{now, s.Taken}
		}
		if at, asked := p.Asked[n.Name]; asked && s.Taken.Sub(at) > p.Up() {
			delete(p.Asked, n.Name) // request it again
		}
	}
	return failed
}

// Ready returns the latest Unix second at which a usable node is up: now if it is on, never if it is not known
// to come up.
func (p *Power) Ready(n slurmctl.Node, taken time.Time) int64 {
	seen := p.Since[n.Name]
	if seen.Power != n.Power() {
		seen.Since = taken // not watched yet
	}
	at := taken
	switch state := n.Power(); {
	case state == slurmctl.PowerOn:
	case !p.On:
		return planner.Forever // a reboot, or nothing switches it on
	case state == slurmctl.PowerUp:
		if at = seen.Since.Add(p.Up()); taken.After(at.Add(powerCycle)) {
			return planner.Forever // Slurm should have marked it down
		}
	case state == slurmctl.PoweredDown:
		if asked, ok := p.Asked[n.Name]; ok {
			at = asked.Add(p.Up())
		} else if !p.Leaves(taken) {
			at = taken.Add(p.Up())
		}
	case state == slurmctl.PowerDown:
		at = msg.Later(seen.Since.Add(p.Down()), taken).Add(p.Up())
	default:
		at = taken.Add(p.Down() + p.Up())
	}
	return msg.Later(at, taken).Unix()
}

// After returns how many seconds after its last job a node is available again: a node that Slurm is about to
// switch off goes off first.
func (p *Power) After(n slurmctl.Node) int64 {
	if p.On && n.Power() == slurmctl.PowerDrain {
		return int64((p.Down() + p.Up()) / time.Second)
	}
	return 0
}

// ToSwitch returns which nodes of a hold must be switched on now, and which ones kept on. It also reports
// whether the hold waits for nodes that are not on.
func (p *Power) ToSwitch(s *Snapshot, h Hold, held []string, now time.Time) (off, on []string, waits bool) {
	left := time.Unix(h.Start, 0).Sub(now)
	for _, name := range Common(h.Nodes, held) {
		i, known := s.Index[name]
		if !known || !s.Nodes[i].Usable() || s.InUse[name] {
			continue
		}
		switch s.Nodes[i].Power() {
		case slurmctl.PowerOn:
			if p.Saving.SuspendTime > 0 && now.Sub(p.Kept[name]) >= p.Saving.SuspendTime/2 {
				on = append(on, name)
			}
		case slurmctl.PoweredDown:
			waits = true
			if _, asked := p.Asked[name]; !asked && left <= p.Up()+PowerLead {
				off = append(off, name)
			}
		default:
			waits = true
		}
	}
	return off, on, waits
}
