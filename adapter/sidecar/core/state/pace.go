package state

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// A poll of a cluster with 10,000 jobs costs slurmctld about 30 ms, a hundred times as much as a poll of a
// small cluster. Routine polls are spaced so that slurmctld spends at most a share of its time (slurm.share)
// on them. Nothing that is due waits for a poll: the sidecar starts and grows jobs from what it knows. If
// nodes are not free yet, it polls only the nodes, which is cheap.

const (
	// fast is the time between two polls of only the nodes while something waits for them, and between whole polls
	// while a start waits for one.
	fast = 250 * time.Millisecond
	// FastFor is how long the loop polls this often after a start or growth was due.
	FastFor = 10 * time.Second
	// urgency is how many times more of slurmctld's time an urgent poll may take.
	urgency = 10
	// MaxPause bounds the pause between two polls: holds end a minute after their time.
	MaxPause = 20 * time.Second
	// pollsCompared is how many polls in a row must be expensive before the loop spaces them.
	pollsCompared = 4
)

// Pace decides when to poll Slurm.
type Pace struct {
	Polling  bool
	Begun    time.Time                    // the last poll
	Ended    time.Time                    //
	Bare     time.Duration                // processor time of a command that asks for next to nothing, on this host; 0: not measured
	Costs    [pollsCompared]time.Duration // processor time of the latest polls' commands beyond bare ones, latest first
	Measure  bool                         // the next poll measures a bare command as well
	Pause    time.Duration                // pause after the poll
	Urgent   bool                         // something due waits for a poll
	Gated    bool                         // polls are expensive: what can wait does so while the backfill scheduler runs
	AtNodes  bool                         // a poll of only the nodes is running
	NodesAt  time.Time                    // when the last such poll was made
	Waiting  time.Duration                // how long something has waited for nodes; below 0: nothing waits
	Growing  bool                         // a running job waits for nodes to grow
	FarHolds allowance
	Mirror   allowance
}

// Spare sets the pause after a poll from the processor time of its commands. A bare command, measured beside
// the poll, shows how much of that is the start of a command on this host and not slurmctld's answer. It is
// measured at first, as soon as a poll seems expensive, and each time that the configuration is read. Only a
// cost that all of the latest polls share comes from Slurm; a single expensive poll comes from something else
// on this machine.
func (p *Pace) Spare(in *msg.Observation, share float64, poll time.Duration) {
	known := p.Bare > 0 || in.BareCPU > 0
	if in.BareCPU > 0 {
		p.Bare = in.BareCPU
	}
	cost := max(in.CPU-time.Duration(in.Commands)*p.Bare, 0)
	if !known {
		p.Measure = cost > 0
		return
	}
	copy(p.Costs[1:], p.Costs[:])
	p.Costs[0] = cost
	pause := func(cost time.Duration) time.Duration { return time.Duration(float64(cost) / share) }
	p.Measure = pause(cost) > poll
	p.Pause = min(pause(slices.Min(p.Costs[:])), MaxPause)
	p.Gated = p.Pause > max(poll, time.Second)
}

// Next returns when the next whole poll must begin; wanted is when one was asked for.
func (p *Pace) Next(wanted time.Time) time.Time {
	at := p.Ended.Add(p.Pause)
	if wanted.After(at) {
		at = wanted
	}
	if p.Urgent {
		if soon := p.Ended.Add(max(fast, p.Pause/urgency)); soon.Before(at) {
			at = soon
		}
	}
	return at
}

// NextNodes returns when to poll only the nodes, or zero for not at all.
func (p *Pace) NextNodes() time.Time {
	if p.Waiting < 0 || p.AtNodes {
		return time.Time{}
	}
	last := p.NodesAt
	if p.Begun.After(last) {
		last = p.Begun
	}
	return last.Add(max(fast, p.Waiting/4))
}
