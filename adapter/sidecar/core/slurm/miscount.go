package slurm

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// contactTakes is how long a node that was contacted may take to answer.
const contactTakes = 10 * time.Second

// Used notes that a job may have used a node whose count may be wrong.
func Used(c *state.Core, name string) {
	m := c.Shrunk[name]
	m.Used = true
	c.Shrunk[name] = m
}

// Told notes that Slurm has been made to ask a node.
func Told(c *state.Core, name string) {
	if m := c.Shrunk[name]; m.Told.Before(m.Asked) {
		m.Told = c.Now
		c.Shrunk[name] = m
	}
}

// AnswersSoon reports whether a node was contacted so lately that it may not have answered.
func AnswersSoon(c *state.Core, m state.Miscount) bool {
	return !m.Asked.IsZero() && !c.Reached(c.Now, m.Asked.Add(contactTakes))
}

// Answered reports whether nodes that were contacted have answered. Slurm starts a job on one that has not, but no job
// step: srun waits there for a minute or more, though the answer takes a second (measured: 22.05.8).
func Answered(c *state.Core, s *state.Snapshot, names []string) bool {
	looked := s.Taken
	if s.NodesTaken.After(looked) {
		looked = s.NodesTaken
	}
	return !slices.ContainsFunc(names, func(name string) bool {
		m := c.Shrunk[name]
		return AnswersSoon(c, m) && (m.Told.Before(m.Asked) || !looked.After(m.Told) || s.Asked[name])
	})
}
