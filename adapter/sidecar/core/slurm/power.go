package slurm

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// PowerReady returns the latest Unix second at which a usable node is up: now if it is on, never if it is not known
// to come up.
func PowerReady(p *state.Power, n slurmctl.Node, taken time.Time) int64 {
	seen := p.Since[n.Name]
	if seen.Power != n.Power() {
		seen.Since = taken // not watched yet
	}
	at := taken
	switch power := n.Power(); {
	case power == slurmctl.PowerOn:
	case !p.On:
		return planner.Forever // a reboot, or nothing switches it on
	case power == slurmctl.PowerUp:
		if at = seen.Since.Add(p.Up()); taken.After(at.Add(state.PowerCycle)) {
			return planner.Forever // Slurm should have marked it down
		}
	case power == slurmctl.PoweredDown:
		if asked, ok := p.Asked[n.Name]; ok {
			at = asked.Add(p.Up())
		} else if !p.Leaves(taken) {
			at = taken.Add(p.Up())
		}
	case power == slurmctl.PowerDown:
		at = msg.Later(seen.Since.Add(p.Down()), taken).Add(p.Up())
	default:
		at = taken.Add(p.Down() + p.Up())
	}
	return msg.Later(at, taken).Unix()
}

// OffAfter returns how many seconds after its last job a node is available again: a node that Slurm is about to
// switch off goes off first.
func OffAfter(p *state.Power, n slurmctl.Node) int64 {
	if p.On && n.Power() == slurmctl.PowerDrain {
		return int64((p.Down() + p.Up()) / time.Second)
	}
	return 0
}
