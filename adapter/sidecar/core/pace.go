package core

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A poll of a cluster with 10,000 jobs costs slurmctld about 30 ms, a hundred times as much as a poll of a
// small cluster. Routine polls are spaced so that slurmctld spends at most a share of its time (slurm.share)
// on them. Nothing that is due waits for a poll: the sidecar starts and grows jobs from what it knows. If
// nodes are not free yet, it polls only the nodes, which is cheap.

const (
	// fast is the time between two polls of only the nodes while something waits for them, and between whole polls
	// while a start waits for one.
	fast = 250 * time.Millisecond
	// fastFor is how long the loop polls this often after a start or growth was due.
	fastFor = 10 * time.Second
	// urgency is how many times more of slurmctld's time an urgent poll may take.
	urgency = 10
	// maxPause bounds the pause between two polls: holds end a minute after their time.
	maxPause = 20 * time.Second
	// pollsCompared is how many polls in a row must be expensive before the loop spaces them.
	pollsCompared = 4
)

// pace decides when to poll Slurm.
type pace struct {
	polling  bool
	begun    time.Time                    // the last poll
	ended    time.Time                    //
	bare     time.Duration                // processor time of a command that asks for next to nothing, on this host; 0: not measured
	costs    [pollsCompared]time.Duration // processor time of the latest polls' commands beyond bare ones, latest first
	measure  bool                         // the next poll measures a bare command as well
	pause    time.Duration                // pause after the poll
	urgent   bool                         // something due waits for a poll
	gated    bool                         // polls are expensive: what can wait does so while the backfill scheduler runs
	atNodes  bool                         // a poll of only the nodes is running
	nodesAt  time.Time                    // when the last such poll was made
	waiting  time.Duration                // how long something has waited for nodes; below 0: nothing waits
	growing  bool                         // a running job waits for nodes to grow
	farHolds allowance
	mirror   allowance
}

// spare sets the pause after a poll from the processor time of its commands. A bare command, measured beside
// the poll, shows how much of that is the start of a command on this host and not slurmctld's answer. It is
// measured at first, as soon as a poll seems expensive, and each time that the configuration is read. Only a
// cost that all of the latest polls share comes from Slurm; a single expensive poll comes from something else
// on this machine.
func (p *pace) spare(in *Observation, share float64, poll time.Duration) {
	known := p.bare > 0 || in.BareCPU > 0
	if in.BareCPU > 0 {
		p.bare = in.BareCPU
	}
	cost := max(in.CPU-time.Duration(in.Commands)*p.bare, 0)
	if !known {
		p.measure = cost > 0
		return
	}
	copy(p.costs[1:], p.costs[:])
	p.costs[0] = cost
	pause := func(cost time.Duration) time.Duration { return time.Duration(float64(cost) / share) }
	p.measure = pause(cost) > poll
	p.pause = min(pause(slices.Min(p.costs[:])), maxPause)
	p.gated = p.pause > max(poll, time.Second)
}

// next returns when the next whole poll must begin; wanted is when one was asked for.
func (p *pace) next(wanted time.Time) time.Time {
	at := p.ended.Add(p.pause)
	if wanted.After(at) {
		at = wanted
	}
	if p.urgent {
		if soon := p.ended.Add(max(fast, p.pause/urgency)); soon.Before(at) {
			at = soon
		}
	}
	return at
}

// nextNodes returns when to poll only the nodes, or zero for not at all.
func (p *pace) nextNodes() time.Time {
	if p.waiting < 0 || p.atNodes {
		return time.Time{}
	}
	last := p.nodesAt
	if p.begun.After(last) {
		last = p.begun
	}
	return last.Add(max(fast, p.waiting/4))
}

// startPolls starts the polls that are due.
func (c *Core) startPolls() {
	p := &c.pace
	if !p.polling && !c.now.Before(p.next(c.nextCycle)) {
		p.polling = true
		// gated even if urgent: what waits for them would wait for the locks as well
		config := c.now.Sub(c.configRead) > ConfigFor
		c.emit(Poll{Config: config, Gently: p.gated, Measure: p.measure || config && p.bare > 0})
	}
	if at := p.nextNodes(); !at.IsZero() && !c.now.Before(at) {
		p.atNodes, p.nodesAt = true, c.now
		c.emit(PollNodes{Gently: p.gated && !p.growing})
	}
}

// ConfigFor is how long the sidecar relies on the configuration that it read from Slurm.
const ConfigFor = 5 * time.Minute

// nodesSeen processes which nodes have become free.
func (c *Core) nodesSeen(in NodesSeen) {
	c.pace.atNodes = false
	if in.Err == nil && c.snapshot != nil && !c.countsStand() {
		c.snapshot.refresh(in.Nodes, in.Begun)
	}
}

// refresh applies a later poll of only the nodes: which can be used, and which are free.
func (s *snapshot) refresh(nodes []slurmctl.Node, taken time.Time) {
	s.nodesTaken, s.nodes = taken, slices.Clone(s.nodes) // an observation must not change
	for _, n := range nodes {
		i, ok := s.index[n.Name]
		if !ok {
			continue
		}
		s.nodes[i] = n
		if n.CPUsAlloc == 0 && (n.State == "idle" || n.State == "reserved") {
			delete(s.inUse, n.Name)
		} else {
			s.inUse[n.Name] = true
		}
	}
}

// wakeAt returns when the loop has something to do unless a call comes before.
func (c *Core) wakeAt() time.Time {
	now := c.now
	at := now.Add(time.Minute)
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if !c.pace.polling {
		sooner(c.pace.next(c.nextCycle))
	}
	if t := c.pace.nextNodes(); !t.IsZero() {
		sooner(t)
	}
	for _, j := range c.active {
		for _, t := range []time.Time{j.due(), j.retryAt, j.holdRetry, j.offerDue()} {
			if t.After(now) {
				sooner(t)
			}
		}
	}
	for _, t := range c.work.retry {
		if t.After(now) {
			sooner(t)
		}
	}
	if t := c.work.nextChore(c.pace.gated); t.After(now) {
		sooner(t)
	}
	return at
}
