package power

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Slurm switches a node off once it has been idle for SuspendTime, because it cannot know how long the node stays idle.
// The plan knows. So a node goes off at once if its first planned use is further away than it takes to go off, to
// come up, and to save what that costs. It stays on if its use is nearer, although Slurm would switch it off. What nobody
// planned finds the nodes of the reserve awake, and waits for a boot beyond that.
//
// Room hold switches on the nodes of holds (hold/power.go). This room does the same for planned starts without a hold.

// Manage is called once the plan of a poll is there. It judges the idle nodes as often as Slurm changes their power, and, by
// the mode, reports what could be off, or switches nodes off and on.
func Manage(c *state.Core, s *state.Snapshot) {
	p := &c.Power.ByPlan
	if p.As != c.Config.Power.Mode { // figures of different modes do not add up
		*p = state.PowerPlan{As: c.Config.Power.Mode, Naps: map[string]state.Nap{}, Paused: p.Paused, Because: p.Because, Failures: p.Failures}
	}
	count(c, s)
	reportFailed(c, s)
	if p.Why = prevented(c); p.Why != "" {
		clear(p.Naps)
		return
	}
	if c.Now.Before(p.Looked.Add(state.PowerCycle)) {
		return
	}
	p.Looked = c.Now
	v := judge(c, s)
	p.Reserve = v.reserve
	if c.Config.Power.Mode == config.PowerAdvise {
		advise(c, s, v)
	} else {
		act(c, s, v)
	}
	tell(c, s)
}

// prevented returns why no node goes off by plan at present, or "".
func prevented(c *state.Core) string {
	p := &c.Power
	switch {
	case c.Config.Power.Mode == config.PowerOff:
		return "power.mode is off"
	case !p.On:
		return savesNone
	case p.Saving.SuspendTime <= 0:
		return "SuspendTime is INFINITE, with which Slurm switches no node off: set it, as long as you like"
	case p.Except.Unclear != "":
		return p.Except.Unclear + " does not say which nodes Slurm must keep on"
	case c.Releases():
		return "all jobs are released"
	case c.Now.Before(p.ByPlan.Paused):
		return p.ByPlan.Because + "; no node goes off until " + state.ClockText(c, p.ByPlan.Paused)
	case p.Leaves(c.Now):
		return denied
	case c.Now.Before(c.Started.Add(settling)):
		return "the sidecar has just started, and may not know all jobs yet"
	}
	return ""
}

// savesNone says why no node is switched, and nothing is learnt.
const savesNone = "Slurm saves no power here: it needs SuspendProgram, ResumeProgram, and SuspendTime"

// denied says why no node can be switched.
const denied = "Slurm denies the sidecar to switch nodes: run it as root, SlurmUser, or an administrator"

// settling is how long after its start the sidecar switches no node off.
const settling = time.Minute

// BreakEven returns how long a node of any type must be off, beyond its shutdown and boot, to save power.
func BreakEven(c *state.Core) time.Duration {
	of := func(w config.Watts) int64 {
		seconds, _ := w.Model().BreakEven(int64(c.Power.Down()/time.Second), int64(c.Power.Up()/time.Second))
		return seconds
	}
	most := of(c.Config.Power.Watts)
	for _, t := range c.Config.Power.Types {
		most = max(most, of(t.Watts))
	}
	return time.Duration(most) * time.Second
}

// gap returns how far away the first use of a node must be for the node to go off.
func gap(c *state.Core) time.Duration {
	p := &c.Power
	return p.Down() + p.Up() + BreakEven(c) + p.Wave(len(p.ByPlan.Naps)+1)
}

// verdict says what becomes of the idle nodes.
type verdict struct {
	off     []string             // may go off, the first ones first
	naps    map[string]state.Nap // of these
	due     []string             // must come up, because their use is near
	wake    []string             // must come up for the reserve
	keep    []string             // are on and stay on, although Slurm might switch them off
	reserve map[string]int       // by partition
}

// spares counts by partition the idle nodes that are on and not wanted soon, and how many must be.
type spares struct{ has, need map[string]int }

// beyond reports whether the reserves do without a node.
func (x spares) beyond(n *node) bool {
	return !slices.ContainsFunc(n.parts, func(part string) bool { return x.has[part] <= x.need[part] })
}

// lack reports whether a reserve needs a further node such as this one.
func (x spares) lack(n *node) bool {
	return slices.ContainsFunc(n.parts, func(part string) bool { return x.has[part] < x.need[part] })
}

func (x spares) add(n *node, by int) {
	for _, part := range n.parts {
		x.has[part] += by
	}
}

// judge decides about all idle nodes.
func judge(c *state.Core, s *state.Snapshot) verdict {
	uses := firstUses(c, s)
	idle := idleNodes(c, s, uses)
	v := verdict{naps: map[string]state.Nap{}, reserve: map[string]int{}}
	for name := range s.Partitions {
		v.reserve[name] = reserveOf(c, s, name)
	}
	spare := spares{map[string]int{}, v.reserve}
	for i := range idle {
		if idle[i].spare {
			spare.add(&idle[i], 1)
		}
	}
	for i := range idle { // those that Slurm gives to jobs last go off first
		if n := &idle[len(idle)-1-i]; n.mayGoOff && spare.beyond(n) {
			v.off = append(v.off, n.name)
			v.naps[n.name] = state.Nap{Since: s.Taken, Until: uses[n.at]}
			spare.add(n, -1)
		}
	}
	for i := range idle {
		v.stayOn(&idle[i], spare)
	}
	return v
}

// stayOn decides whether a node comes up, or is kept on.
func (v *verdict) stayOn(n *node, spare spares) {
	_, goesOff := v.naps[n.name]
	switch {
	case n.isOff && n.isDue:
		v.due = append(v.due, n.name)
	case n.isOff && n.unwanted && spare.lack(n):
		v.wake = append(v.wake, n.name)
		spare.add(n, 1)
	case n.isOn && !n.excepted && !goesOff && (n.spare && !spare.beyond(n) || n.wantedSoon):
		v.keep = append(v.keep, n.name)
	}
}
