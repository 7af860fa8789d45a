package talk

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Problem returns the current queue as a problem for any strategy, or nil before the first poll of Slurm. A
// job of several partitions is in the partition of its current plan, or in the first one.
func Problem(c *state.Core) *msg.Problem {
	if c.Snapshot == nil {
		return nil
	}
	p := follow.Problem(c, c.Snapshot)
	for i := range p.Batches {
		b := &p.Batches[i]
		at := max(b.Present, 0)
		b.Places = b.Places[at : at+1]
	}
	return p
}
