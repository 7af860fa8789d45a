package slurm

import (
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// WattsOf returns what a node draws: by its type, as the latest snapshot has it.
func WattsOf(c *state.Core, node string) config.Watts {
	s := c.Snapshot
	if s == nil || len(c.Config.Power.Types) == 0 {
		return c.Config.Power.Watts
	}
	if s.Watts == nil {
		s.Watts = make([]config.Watts, len(s.Nodes))
		of := c.Config.Power.WattsOf()
		for i := range s.Nodes {
			s.Watts[i] = of(s.Nodes[i].Name, s.Nodes[i].Features)
		}
	}
	if i, known := s.Index[node]; known {
		return s.Watts[i]
	}
	return c.Config.Power.Watts
}
