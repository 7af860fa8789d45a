package pace

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
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

// NewSnapshot returns what an observation shows; before is the last snapshot, or nil.
func NewSnapshot(in msg.Observation, before *state.Snapshot) *state.Snapshot {
	s := &state.Snapshot{Taken: in.Begun, Jobs: in.Jobs, ByID: make(map[slurmctl.JobID]*slurmctl.Job, len(in.Jobs)),
		Partitions: map[string]slurmctl.Partition{}, Reservations: map[string]slurmctl.Reservation{}, InUse: make(msg.Set, len(in.Nodes))}
	if before != nil && slices.EqualFunc(in.Nodes, before.Nodes, func(a, b slurmctl.Node) bool { return a.Name == b.Name }) {
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
