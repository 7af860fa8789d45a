package pace

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A poll of a cluster with 10,000 jobs costs slurmctld about 30 ms, a hundred times as much as a poll of a
// small cluster. Routine polls are spaced so that slurmctld spends at most a share of its time (slurm.share)
// on them, however far apart they come. Nothing that is due waits for a poll: the sidecar starts and grows jobs
// from what it knows, and reads single jobs. If nodes are not free yet, it polls only the nodes, which is cheap.

const (
	// fast is the time between two polls of only the nodes while something waits for them, and between whole polls
	// while a start waits for one.
	fast = 250 * time.Millisecond
	// FastFor is how long the loop polls this often after a start or growth was due.
	FastFor = 10 * time.Second
	// urgency is how many times sooner than a routine poll an urgent one may come. Later polls make up for it.
	urgency = 10
	// MostPause bounds the time between two polls. By default (1 %), polls keep to their share up to a cost of 36 s.
	MostPause = time.Hour
	// leastCredit is how much time urgent polls may at least use in advance.
	leastCredit = 10 * time.Second
	// longPause is a time between two polls from which on users notice it, and holds last longer.
	longPause = 20 * time.Second
)

// credit returns how much time urgent polls may use in advance.
func credit(p *state.Pace) time.Duration { return max(p.Pause, leastCredit) }

// indebted notes that a poll begins, perhaps earlier than its pause.
func indebted(p *state.Pace, begun time.Time) {
	p.Debt = min(max(p.Debt+p.Pause-begun.Sub(p.Ended), 0), credit(p)+p.Pause)
}

// warnPauses is how many pauses lie between two commands that signal jobs. Each costs as much as a poll, so that they
// take half of the share at most; polls make up for them.
const warnPauses = 2

// MayWarn reports whether jobs may be signalled now. A cost that only the latest poll had counts as well: it may be
// chance, but a warning can wait.
func MayWarn(c *state.Core) bool {
	p := &c.Pace
	return slurmctl.SignalsAlone(c.SlurmConfig) || c.Due(c.Now, p.Warned.Add(warnPauses*max(p.Pause, pauseAfter(p.Costs[0], c.Config.Slurm.Share))))
}

// Warns notes that jobs are signalled.
func Warns(c *state.Core) {
	if p := &c.Pace; !slurmctl.SignalsAlone(c.SlurmConfig) {
		p.Warned, p.Debt = c.Now, min(p.Debt+p.Pause, credit(p)+p.Pause)
	}
}

// pauseAfter returns how long after a poll of some cost the next one may come.
func pauseAfter(cost time.Duration, share float64) time.Duration {
	return min(time.Duration(float64(cost)/share), MostPause)
}

// Apart returns how far apart polls may come at present: so long may a new job wait until it is seen. It is 0 if
// they come at every interval.
func Apart(p *state.Pace) time.Duration {
	if p.Pause == 0 {
		return 0
	}
	return min(p.Pause+credit(p), MostPause)
}

// HoldsOn returns how much longer than a minute holds last beyond their time, because the next poll may come that
// late. It changes seldom, so that holds do.
func HoldsOn(p *state.Pace) time.Duration {
	apart, on := Apart(p), time.Duration(0)
	for on+longPause < apart {
		on = max(2*on, time.Minute)
	}
	return min(on, MostPause)
}

// spareRate is which part of what slurmctld's rate limit lets through routine polls leave for what is due.
const spareRate = 2

// KeepToRate makes the pause long enough for slurmctld's rate limit, if that holds for the sidecar's account.
func KeepToRate(c *state.Core, commands int) {
	if !c.Site.Root && c.SlurmConfig.Limits(c.Site.User) {
		limit, _ := c.SlurmConfig.RateLimit()
		c.Pace.Pause = min(max(c.Pace.Pause, spareRate*limit.Time(commands)), MostPause)
	}
}

// NotePause logs a pause that has become long, or longer, or is no longer so.
func NotePause(c *state.Core) {
	p := &c.Pace
	entry := c.Log.WithField("seconds", int(Apart(p).Seconds()))
	switch apart := Apart(p); {
	case apart <= longPause && p.Told > 0:
		p.Told = 0
		entry.Info("polls come at short intervals again")
	case apart > longPause && (p.Told == 0 || apart > 2*p.Told):
		p.Told = apart
		entry.WithField("share", c.Config.Slurm.Share).WithField("cost_ms", slices.Min(p.Costs[:]).Milliseconds()).
			Warn("polls come far apart to keep to slurm.share or the rate limit: a new job may wait that long, a hold gives way as late")
	}
}

// StartPolls starts the polls that are due.
func StartPolls(c *state.Core) {
	p := &c.Pace
	due := func(t time.Time) bool {
		if c.Now.Before(t) {
			c.WakeAt(t)
			return false
		}
		return true
	}
	if !p.Polling && due(next(p, c.NextCycle)) {
		p.Polling = true
		indebted(p, c.Now)
		// gated even if urgent: what waits for them would wait for the locks as well
		config := c.Now.Sub(c.ConfigRead) > msg.ConfigFor
		c.Emit(msg.Poll{Config: config, Gently: p.Gated, Measure: p.Measure || config && p.Bare > 0})
	}
	if t := nextNodes(p); !t.IsZero() && due(t) {
		p.AtNodes, p.NodesAt = true, c.Now
		c.Emit(msg.PollNodes{Gently: p.Gated && !p.Growing})
	}
}

// Spare sets the pause after a poll from the processor time of its commands. A bare command, measured beside
// the poll, shows how much of that is the start of a command on this host and not slurmctld's answer. It is
// measured at first, as soon as a poll seems expensive, and each time that the configuration is read. Only a
// cost that all of the latest polls share comes from Slurm; a single expensive poll comes from something else
// on this machine.
func Spare(p *state.Pace, in *msg.Observation, share float64, poll time.Duration) {
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
	p.Measure = pauseAfter(cost, share) > poll
	p.Pause = pauseAfter(slices.Min(p.Costs[:]), share)
	p.Gated = p.Pause > max(poll, time.Second)
}

// Share returns which share of slurmctld's time routine polls take at present, by what the latest polls cost.
func Share(p *state.Pace, poll time.Duration) float64 {
	return float64(slices.Min(p.Costs[:])) / float64(max(poll, p.Pause))
}

// next returns when the next whole poll must begin; wanted is when one was asked for.
func next(p *state.Pace, wanted time.Time) time.Time {
	at := p.Ended.Add(min(p.Pause+min(p.Debt, credit(p)), MostPause))
	if wanted.After(at) {
		at = wanted
	}
	if p.Urgent {
		if soon := p.Ended.Add(max(fast, p.Pause/urgency, min(p.Debt+p.Pause-credit(p), 2*p.Pause))); soon.Before(at) {
			at = soon
		}
	}
	return at
}

// nextNodes returns when to poll only the nodes, or zero for not at all.
func nextNodes(p *state.Pace) time.Time {
	if p.Waiting < 0 || p.AtNodes {
		return time.Time{}
	}
	last := p.NodesAt
	if p.Begun.After(last) {
		last = p.Begun
	}
	return last.Add(max(fast, p.Waiting/4))
}
