package pace

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Unobserved is called when a poll failed.
func Unobserved(c *state.Core, err error) {
	if c.LastErr == nil {
		c.Log.WithError(err).Error("cannot poll Slurm; making no changes until a poll succeeds")
	}
	c.LastErr, c.ConfigRead = err, time.Time{} // it may come back with another configuration or version
	c.NextCycle = c.Now.Add(max(c.Config.PollInterval, time.Second))
}

// NewSnapshot returns what an observation shows.
func NewSnapshot(c *state.Core, in msg.Observation) *state.Snapshot {
	s := &state.Snapshot{Taken: in.Begun, Jobs: in.Jobs, ByID: make(map[slurmctl.JobID]*slurmctl.Job, len(in.Jobs)), Holds: map[string]state.OwnName{}, Holders: map[slurmctl.JobID]bool{},
		Partitions: map[string]slurmctl.Partition{}, Reservations: map[string]slurmctl.Reservation{}, InUse: make(msg.Set, len(in.Nodes)),
		LeftToSlurm: c.Power.On && c.Power.Leaves(in.Begun)}
	if before := c.Snapshot; before != nil && slices.EqualFunc(in.Nodes, before.Nodes, func(a, b slurmctl.Node) bool { return a.Name == b.Name }) {
		s.Nodes, s.Index, s.Layout = in.Nodes, before.Index, before.Layout // the same nodes in order
	} else {
		if before != nil {
			s.Layout = before.Layout + 1
		}
		s.Nodes, s.Index = sortedNodes(in.Nodes), make(map[string]int, len(in.Nodes))
		for i, n := range s.Nodes {
			s.Index[n.Name] = i
		}
	}
	for _, p := range in.Partitions {
		s.Partitions[p.Name] = p
	}
	for _, r := range in.Reservations {
		s.Reservations[r.Name] = r
		if own, ours := state.ParseHold(r); ours {
			s.Holds[r.Name], s.Holders[own.Job] = own, true
		}
	}
	marks := in.Marks
	if marks == nil { // no poll has read them
		marks = msg.ReadMarks(in.Jobs, nil)
	}
	s.Marks = make(map[slurmctl.JobID]*msg.Mark, len(marks))
	for i := range marks {
		s.Marks[marks[i].Job] = &marks[i]
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		s.ByID[j.ID] = j
		for _, n := range j.NodeList {
			s.InUse[n] = true
		}
	}
	return s
}

// SwitchedOn returns what the snapshot would show if all nodes that are off were on: Slurm gives jobs such nodes, too.
func SwitchedOn(s *state.Snapshot) *state.Snapshot {
	off := func(n slurmctl.Node) bool { return n.Usable() && n.Power() == slurmctl.PoweredDown }
	if !slices.ContainsFunc(s.Nodes, off) {
		return s
	}
	n := *s
	n.Nodes = slices.Clone(s.Nodes)
	for i := range n.Nodes {
		if off(n.Nodes[i]) {
			n.Nodes[i].Flags = ""
		}
	}
	return &n
}

// sortedNodes orders nodes by name: n2 before n10.
func sortedNodes(nodes []slurmctl.Node) []slurmctl.Node {
	names, byName := make([]string, len(nodes)), make(map[string]slurmctl.Node, len(nodes))
	for i, n := range nodes {
		names[i], byName[n.Name] = n.Name, n
	}
	slurmctl.SortNodes(names)
	sorted := make([]slurmctl.Node, len(names))
	for i, name := range names {
		sorted[i] = byName[name]
	}
	return sorted
}

// A snapshot changes only below, by what is known before the next poll.

// NodesSeen processes a later poll of only the nodes: which can be used, and which are free.
func NodesSeen(c *state.Core, in msg.NodesSeen) {
	c.Pace.AtNodes = false
	s := c.Snapshot
	if in.Err != nil || s == nil || slurm.CountsStand(c) {
		return
	}
	s.NodesTaken, s.Nodes = in.Begun, slices.Clone(s.Nodes) // an observation must not change
	for _, n := range in.Nodes {
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
	ExcuseContacted(c, s)
}

// ExcuseContacted makes nodes count as responding while Slurm waits for the answer that the sidecar had it ask for.
func ExcuseContacted(c *state.Core, s *state.Snapshot) {
	s.Asked = nil
	for name, m := range c.Shrunk {
		i, known := s.Index[name]
		if !known || s.Nodes[i].Flags != "*" || !slurm.AnswersSoon(c, m) {
			continue
		}
		if s.Asked == nil {
			s.Nodes, s.Asked = slices.Clone(s.Nodes), msg.Set{} // an observation must not change
		}
		s.Nodes[i].Flags, s.Asked[name] = "", true
		slurm.Told(c, name)
	}
}

// GivenBack notes that a job has given nodes back: others may have them at once.
func GivenBack(c *state.Core, nodes []string) {
	for _, name := range nodes {
		if c.Snapshot != nil {
			delete(c.Snapshot.InUse, name)
		}
	}
}

// ClockSet translates the times of the snapshot, which were read before Slurm's clock was set.
func ClockSet(c *state.Core, by time.Duration) {
	if c.Snapshot == nil {
		return
	}
	back := msg.Clock{Skew: by}.In
	s := c.Snapshot.Copied() // an attempt may be reading the original
	c.Snapshot = s
	s.OwnRecords()
	for i := range s.Jobs {
		back(&s.Jobs[i].SubmitTime, &s.Jobs[i].StartTime, &s.Jobs[i].EndTime)
	}
	for name, r := range s.Reservations {
		back(&r.Start, &r.End)
		s.Reservations[name] = r
	}
}

// Same processes a poll of a simulation, in virtual time, that shows what the snapshot shows.
func Same(c *state.Core, begun, ended time.Time) {
	p := &c.Pace
	p.Polling, p.Begun, p.Ended = false, begun, ended
	c.NextCycle = begun.Add(c.Config.PollInterval)
	for _, j := range c.Active {
		j.StillQueued(c.Snapshot.Taken, begun)
	}
	c.Snapshot.Taken, c.Snapshot.NodesTaken = begun, time.Time{}
}

// Rested notes when a rest in virtual time had its last poll: what ends before the next one was there until then.
func Rested(c *state.Core, polled time.Time) {
	if s := c.Snapshot; s != nil && s.Taken.Before(polled) {
		s.Taken = polled
	}
}
