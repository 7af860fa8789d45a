package slurm

import (
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
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

// IdleOf returns which part of the latest snapshot's nodes is awake without a job, and what idle nodes draw.
func IdleOf(c *state.Core) msg.Idle {
	s := c.Snapshot
	if s.Idle == nil {
		idle, all := &msg.Idle{}, 0.
		for i := range s.Nodes {
			n := &s.Nodes[i]
			watts := WattsOf(c, n.Name).Idle
			if all += watts; n.Usable() && n.Power() == slurmctl.PowerOn && !s.InUse[n.Name] {
				idle.Nodes, idle.Watts = idle.Nodes+1, idle.Watts+watts
			}
		}
		idle.Mean = all / float64(max(len(s.Nodes), 1))
		s.Idle = idle
	}
	return *s.Idle
}
