package core

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// A poll of a cluster with 10,000 jobs costs slurmctld some 30 ms, a hundred times as
// much as one of a small cluster. Routine polls are spaced so that slurmctld spends no
// more than a share of its time (slurm.share) on them. Nothing that is due waits for
// one: starts and growths are done from what is known, and where nodes are not free
// yet, the nodes alone are polled, which is cheap.

const (
	// fast is the time between two polls of the nodes alone, while something waits for
	// them, and of whole polls, while a start waits for one.
	fast = 250 * time.Millisecond
	// fastFor is for how long after a start or growth was due the loop polls so often.
	fastFor = 10 * time.Second
	// urgency is how many times more of slurmctld's time an urgent poll may take.
	urgency = 10
	// maxPause bounds the pause between two polls: holds end a minute after their time.
	maxPause = 20 * time.Second
	// pollsCompared is how many polls in a row must be dear before the loop spaces them.
	pollsCompared = 4
)

// pace says when to poll Slurm.
type pace struct {
	polling  bool
	begun    time.Time                    // the last poll
	ended    time.Time                    //
	bare     time.Duration                // processor time of a command that asks for next to nothing, on this host; 0: not measured
	costs    [pollsCompared]time.Duration // processor time of the latest polls' commands beyond bare ones, latest first
	measure  bool                         // the next poll measures a bare command beside its own
	pause    time.Duration                // after it
	urgent   bool                         // something due waits for a poll
	gated    bool                         // polls are dear: what can wait waits for the backfill scheduler
	atNodes  bool                         // the nodes alone are being polled
	nodesAt  time.Time                    // when they last were
	waiting  time.Duration                // what waits for nodes does so for that long; below 0: nothing does
	growing  bool                         // and some of it is the growth of a job that runs
	farHolds allowance
	mirror   allowance
}

// spare sets the pause after a poll from the processor time of its commands. How much of
// that is slurmctld's answer, and not the start of a command on this host, shows a bare
// command that is measured right beside: at first, as soon as a poll seems dear, and each
// time that the configuration is read. Only what made all of the latest polls dear was
// Slurm; what made one of them dear was something else on this machine.
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

// next is when the next whole poll is to begin; wanted is when somebody asked for one.
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

// nextNodes is when the nodes alone are to be polled; zero: not at all.
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

// startPolls asks for the polls that are due.
func (c *Core) startPolls() {
	p := &c.pace
	if !p.polling && !c.now.Before(p.next(c.nextCycle)) {
		p.polling = true
		// gated ones that are urgent, too: what waits for them would wait for the locks as well
		config := c.now.Sub(c.configRead) > ConfigFor
		c.emit(Poll{Config: config, Gently: p.gated, Measure: p.measure || config && p.bare > 0})
	}
	if at := p.nextNodes(); !at.IsZero() && !c.now.Before(at) {
		p.atNodes, p.nodesAt = true, c.now
		c.emit(PollNodes{Gently: p.gated && !p.growing})
	}
}

// ConfigFor is for how long Slurm's configuration is taken to be what it was.
const ConfigFor = 5 * time.Minute

// nodesSeen takes over which nodes have become free.
func (c *Core) nodesSeen(in NodesSeen) {
	c.pace.atNodes = false
	if in.Err == nil && c.snapshot != nil && !c.countsStand() {
		c.snapshot.refresh(in.Nodes, in.Begun)
	}
}

// refresh takes over a later poll of the nodes: which can be used, and which are free.
func (s *snapshot) refresh(nodes []slurmctl.Node, taken time.Time) {
	s.nodesTaken, s.nodes = taken, slices.Clone(s.nodes) // an observation is not changed
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

// wakeAt is when the loop has something to do, if nobody calls before.
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
