package plan

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// planAll plans the queue of a bench, as if only nodes that are not usable and running stock jobs were in the way.
func planAll(b *statetest.Bench) {
	TakePlans(b.Core, problemOf(b).Plan(statetest.NoX()))
}

// problemOf returns the queue as it is.
func problemOf(b *statetest.Bench) *msg.Problem {
	now := b.Seen.Taken.Unix()
	o := occupied(b)
	slurm.AddNodes(b.Core, o, b.Seen)
	for i := range b.Seen.Jobs {
		r := &b.Seen.Jobs[i]
		for _, name := range r.NodeList {
			o.Add(b.Seen.Index[name], now, slurm.Releases(b.Core, r, now))
		}
	}
	return ProblemOf(b.Core, b.Seen, o, Candidates(b.Core, b.Seen, now))
}
