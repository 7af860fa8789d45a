package follow

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// StartPolls starts the polls that are due.
func StartPolls(c *state.Core) {
	p := &c.Pace
	if !p.Polling && !c.Now.Before(p.Next(c.NextCycle)) {
		p.Polling = true
		// gated even if urgent: what waits for them would wait for the locks as well
		config := c.Now.Sub(c.ConfigRead) > msg.ConfigFor
		c.Emit(msg.Poll{Config: config, Gently: p.Gated, Measure: p.Measure || config && p.Bare > 0})
	}
	if at := p.NextNodes(); !at.IsZero() && !c.Now.Before(at) {
		p.AtNodes, p.NodesAt = true, c.Now
		c.Emit(msg.PollNodes{Gently: p.Gated && !p.Growing})
	}
}

// NodesSeen processes which nodes have become free.
func NodesSeen(c *state.Core, in msg.NodesSeen) {
	c.Pace.AtNodes = false
	if in.Err == nil && c.Snapshot != nil && !state.CountsStand(c) {
		refresh(c.Snapshot, in.Nodes, in.Begun)
	}
}

// refresh applies a later poll of only the nodes: which can be used, and which are free.
func refresh(s *state.Snapshot, nodes []slurmctl.Node, taken time.Time) {
	s.NodesTaken, s.Nodes = taken, slices.Clone(s.Nodes) // an observation must not change
	for _, n := range nodes {
		i, ok := s.Index[n.Name]
		if !ok {
			continue
		}
		s.Nodes[i] = n
		if n.CPUsAlloc == 0 && (n.State == "idle" || n.State == "reserved") {
			delete(s.InUse, n.Name)
		} else {
			s.InUse[n.Name] = true
		}
	}
}

// WakeAt returns when the loop has something to do unless a call comes before.
func WakeAt(c *state.Core) time.Time {
	now := c.Now
	at := now.Add(time.Minute)
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if !c.Pace.Polling {
		sooner(c.Pace.Next(c.NextCycle))
	}
	if t := c.Pace.NextNodes(); !t.IsZero() {
		sooner(t)
	}
	for _, j := range c.Active {
		for _, t := range []time.Time{j.Due(), j.RetryAt, j.HoldRetry, offerDue(j)} {
			if t.After(now) {
				sooner(t)
			}
		}
	}
	for _, t := range c.Work.Retry {
		if t.After(now) {
			sooner(t)
		}
	}
	if t := c.Work.NextChore(c.Pace.Gated); t.After(now) {
		sooner(t)
	}
	return at
}
