package slurm

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// contactTakes is how long a node that was contacted may take to answer.
const contactTakes = 10 * time.Second

// ExcuseContacted makes nodes count as responding while Slurm waits for the answer that the sidecar had it ask for.
func ExcuseContacted(c *state.Core, s *state.Snapshot) {
	copied := false
	for name, m := range c.Shrunk {
		i, known := s.Index[name]
		if !known || s.Nodes[i].Flags != "*" || m.Asked.IsZero() || c.Reached(c.Now, m.Asked.Add(contactTakes)) {
			continue
		}
		if !copied {
			s.Nodes, copied = slices.Clone(s.Nodes), true // an observation must not change
		}
		s.Nodes[i].Flags = ""
	}
}
