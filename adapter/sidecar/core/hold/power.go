package hold

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// PowerLead is how much earlier than necessary the sidecar switches nodes on: polls may be late.
	PowerLead = 15 * time.Second
	// powerDenied is how long the sidecar waits before it tries again what Slurm denied.
	powerDenied = 5 * time.Minute
)

// WatchPower is called with every poll. It logs nodes that do not come up. Plans that have them are remade, as
// for any node that is down.
func WatchPower(c *state.Core, s *state.Snapshot) {
	failed := watchPower(&c.Power, s)
	if c.Power.Failed = failed; len(failed) == 0 {
		return
	}
	nodes := slurmctl.CompressNodes(failed)
	c.Log.WithField("nodes", nodes).Warn("nodes did not power up, looking for others")
	for _, j := range c.Active {
		if mine := msg.Common(failed, j.Planned()); len(mine) > 0 {
			c.Event(j, "nodes did not come up", map[string]any{"nodes": slurmctl.CompressNodes(mine)})
		}
	}
}

// SwitchNodes switches on the nodes of holds that will be needed. It keeps nodes on that would be switched off
// too late to be on again in time. That includes nodes that the shares do not allow to hold: with each poll, the plan
// counts them as free only after a boot from then on, so a start that needs them would never come.
func SwitchNodes(c *state.Core, s *state.Snapshot) {
	p, now := &c.Power, c.Now
	if !p.On || p.Leaves(now) {
		return
	}
	var off, on []string
	ahead := 0 // nodes that Slurm switches on before
	for _, h := range nearHolds(c, now.Unix()) {
		ahead += len(h.Nodes)
		r, held := HoldFor(c, h.Job, h.Step)
		if !held && slices.Contains(h.Job.Deferred, h.Step) {
			r.Nodes, held = h.Nodes, true
		}
		if left := time.Unix(h.Start, 0).Sub(now); !held || left > p.Up()+p.Down()+PowerLead+p.Wave(ahead) {
			continue
		}
		down, idle, waits := toSwitch(p, s, h, r.Nodes, now, p.Wave(ahead))
		off, on = append(off, down...), append(on, idle...)
		if waits && h.Step == 1 && h.Job.State == row.Queued {
			h.Job.WaitsFor(state.Because(state.WhySwitchingOn))
		}
	}
	off, on = sortedSet(off), sortedSet(on)
	PowerUp(c, off)
	KeepUp(c, on)
}

// PowerUp switches nodes on.
func PowerUp(c *state.Core, nodes []string) {
	changePower(c, state.KindPowerUp, msg.PowerUp{nodes}, nodes, "nodes switched on", c.Power.Asked)
}

// KeepUp prevents nodes from being switched off for now.
func KeepUp(c *state.Core, nodes []string) {
	changePower(c, state.KindKeepUp, msg.KeepUp{nodes}, nodes, "nodes kept on", c.Power.Kept)
}

// watchPower records since when nodes have their power state. It returns the nodes that should have come up and are
// not usable.
func watchPower(p *state.Power, s *state.Snapshot) (failed []string) {
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
			p.Since[n.Name] = state.PowerSeen{now, s.Taken}
		}
		if at, asked := p.Asked[n.Name]; asked && s.Taken.Sub(at) > p.Up()+p.Wave(len(p.Asked)) {
			delete(p.Asked, n.Name) // request it again
		}
	}
	return failed
}

// toSwitch returns which nodes of a hold must be switched on now, and which ones kept on. It gets how much longer it may
// take for the last of them to come up. It also reports whether the hold waits for nodes that are not on.
func toSwitch(p *state.Power, s *state.Snapshot, h state.Hold, held []string, now time.Time, wave time.Duration) (off, on []string, waits bool) {
	left := time.Unix(h.Start, 0).Sub(now)
	for _, name := range msg.Common(h.Nodes, held) {
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
			if _, asked := p.Asked[name]; !asked && left <= p.Up()+PowerLead+wave {
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
func changePower(c *state.Core, kind state.Kind, do msg.Command, nodes []string, what string, asked map[string]time.Time) {
	if len(nodes) == 0 || !c.Work.Room() || !c.Ask(nil, what, kind, msg.Task{Command: do}, state.Args{What: what}) {
		return
	}
	for _, n := range nodes {
		asked[n] = c.Now
	}
}

// SettlePowerUp is called when nodes were switched on, or when that failed.
func SettlePowerUp(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	powerChanged(c, p, o, state.CommandOf[msg.PowerUp](p).Nodes, c.Power.Asked)
}

// SettleKeepUp is called when nodes were kept on, or when that failed.
func SettleKeepUp(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	powerChanged(c, p, o, state.CommandOf[msg.KeepUp](p).Nodes, c.Power.Kept)
}

// powerChanged removes the record of the request if Slurm refused it.
func powerChanged(c *state.Core, p *state.Pending, o msg.Outcome, nodes []string, asked map[string]time.Time) {
	entry := c.Log.WithField("nodes", slurmctl.CompressNodes(nodes))
	if o.Err == nil {
		entry.Debug(p.Args.What)
		return
	}
	for _, n := range nodes {
		delete(asked, n)
	}
	PowerDenied(c, o.Err)
	entry.WithError(o.Err).Warn("Slurm refuses to switch nodes on or keep them on; growths onto nodes that are off will be late")
}

// PowerDenied leaves the nodes' power to Slurm for a while if it denies the sidecar to change it.
func PowerDenied(c *state.Core, err error) {
	if errors.Is(err, slurmctl.ErrAccessDenied) {
		c.Power.Denied = c.Now.Add(powerDenied)
		c.Event(nil, "power left to Slurm", map[string]any{"error": err.Error()})
	}
}

// Awaited returns in words which state of the nodes makes a job wait, or `otherwise` if their state is not the
// reason.
func Awaited(s *state.Snapshot, names []string, otherwise string) string {
	if text := Switching(s, names); text != "" {
		return text
	}
	var out, states []string
	for _, name := range names {
		i, known := s.Index[name]
		if !known || s.Nodes[i].Awake() && !s.Asked[name] {
			continue
		}
		out = append(out, name)
		state := cmp.Or(s.Nodes[i].Unusable(), s.Nodes[i].State)
		if s.Asked[name] {
			state = "contacted"
		}
		if !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	if len(out) == 0 {
		return otherwise
	}
	return fmt.Sprintf("waits for %s (%s)", slurmctl.CompressNodes(out), strings.Join(states, ", "))
}

// Switching returns in words how many of the nodes are off, or "" if none is.
func Switching(s *state.Snapshot, names []string) string {
	off := 0
	for _, name := range names {
		if i, ok := s.Index[name]; ok && s.Nodes[i].Usable() && s.Nodes[i].Power() != slurmctl.PowerOn {
			off++
		}
	}
	if off == 0 {
		return ""
	}
	return fmt.Sprintf("waits for %d nodes that are being switched on", off)
}
