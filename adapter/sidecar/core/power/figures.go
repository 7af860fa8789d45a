package power

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

const (
	// tellEvery is the least time between two lines of the log with figures.
	tellEvery = time.Hour
	// mostUncounted is the longest time between two polls that counts: nobody knows what happened in a longer one.
	mostUncounted = 10 * time.Minute
	// mostGroups bounds the groups of nodes that are shown.
	mostGroups = 100
)

// savedWatts returns how much less the nodes draw that are off by plan.
func savedWatts(c *state.Core) (all float64) {
	for _, name := range state.SortedKeys(c.Power.ByPlan.Naps) { // sums of fractions depend on the order
		w := slurm.WattsOf(c, name)
		all += w.Idle - w.Off
	}
	return all
}

// bootCosts returns how many joules more than an idle node a node draws that comes up.
func bootCosts(c *state.Core, name string) float64 {
	w := slurm.WattsOf(c, name)
	return (w.Booting - w.Idle) * c.Power.Saving.ResumeTimeout.Seconds()
}

// count adds what was saved since the previous poll. A node that goes off saves nothing until then.
func count(c *state.Core, s *state.Snapshot) {
	p := &c.Power.ByPlan
	since := p.Counted
	p.Counted = s.Taken
	if p.From.IsZero() || since.IsZero() {
		p.From = s.Taken
		return
	}
	took := s.Taken.Sub(since)
	if took <= 0 || took > mostUncounted {
		return
	}
	for _, name := range state.SortedKeys(p.Naps) {
		if s.Taken.Sub(p.Naps[name].Since) >= c.Power.Saving.SuspendTimeout {
			w := slurm.WattsOf(c, name)
			p.Joules += (w.Idle - w.Off) * took.Seconds()
		}
	}
}

// tell logs the figures from time to time.
func tell(c *state.Core, s *state.Snapshot) {
	p := &c.Power.ByPlan
	if len(p.Naps) == 0 || !p.Told.IsZero() && c.Now.Before(p.Told.Add(tellEvery)) {
		return
	}
	p.Told = c.Now
	text := "idle nodes are off by plan"
	if c.Config.Power.Mode == config.PowerAdvise {
		text = "idle nodes could be off (power.mode: act)"
	}
	c.Log.WithField("nodes", len(p.Naps)).WithField("watts", savedWatts(c)).WithField("kwh", p.Joules/joulesPerKWh).
		WithField("since", state.ClockText(c, p.From)).Info(text)
}

const joulesPerKWh = 3.6e6

// stateOf returns the count that a node belongs to.
func stateOf(states *api.PowerStates, n *slurmctl.Node, used bool) *int {
	switch power := n.Power(); {
	case !n.Usable():
		return &states.Unusable
	case power == slurmctl.PowerUp:
		return &states.Booting
	case power == slurmctl.PoweredDown || power == slurmctl.PowerDown:
		return &states.Off
	case used:
		return &states.Busy
	}
	return &states.Idle
}

// Summary returns what a status has of it; nil if the mode is off.
func Summary(c *state.Core) *api.PowerSummary {
	p := &c.Power.ByPlan
	if c.Config.Power.Mode == config.PowerOff {
		return nil
	}
	return &api.PowerSummary{Mode: string(c.Config.Power.Mode), Nodes: len(p.Naps), Saves: savedWatts(c), KWh: p.Joules / joulesPerKWh, Boots: p.Boots}
}

// Show returns what is off by plan, or would be, and the figures.
func Show(c *state.Core) api.Power {
	p, w := &c.Power.ByPlan, c.Config.Power.Watts
	a := api.Power{Mode: string(c.Config.Power.Mode), Why: p.Why, Watts: api.Watts{Busy: w.Busy, Idle: w.Idle, Off: w.Off, Booting: w.Booting},
		Boot: c.Power.Up().Seconds(), Shutdown: c.Power.Down().Seconds(), BreakEven: BreakEven(c).Seconds(), Reserve: []api.PowerReserve{},
		Nodes: len(p.Naps), Saves: savedWatts(c), KWh: p.Joules / joulesPerKWh, Boots: p.Boots, Since: c.Wall(p.From), Naps: []api.PowerNap{}}
	if s := c.Snapshot; s != nil {
		for i := range s.Nodes {
			*stateOf(&a.States, &s.Nodes[i], s.InUse[s.Nodes[i].Name])++
		}
	}
	for _, part := range state.SortedKeys(p.Reserve) {
		a.Reserve = append(a.Reserve, api.PowerReserve{Partition: part, Nodes: p.Reserve[part], Today: today(c, part)})
	}
	byUse := map[int64][]string{}
	for _, name := range state.SortedKeys(p.Naps) {
		at := p.Naps[name].Until
		byUse[at] = append(byUse[at], name)
	}
	var ends []int64
	for at := range byUse {
		ends = append(ends, at)
	}
	slices.Sort(ends)
	for _, at := range ends[:min(len(ends), mostGroups)] {
		nap := api.PowerNap{Nodes: len(byUse[at]), NodeList: slurmctl.CompressNodes(byUse[at])}
		if at < planner.Forever {
			nap.Until = c.Wall(time.Unix(at, 0))
		}
		for i, name := range byUse[at] {
			if since := c.Wall(p.Naps[name].Since); i == 0 || since.Before(nap.Since) {
				nap.Since = since
			}
		}
		a.Naps = append(a.Naps, nap)
	}
	return a
}
