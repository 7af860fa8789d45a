package plan

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// planAll plans the queue of a bench, as if only nodes that are not usable and running stock jobs were in the way.
func planAll(b *statetest.Bench) {
	now := b.Seen.Taken.Unix()
	o := msg.NewOccupancy(len(b.Seen.Nodes), now)
	slurm.AddNodes(b.Core, o, b.Seen)
	for i := range b.Seen.Jobs {
		r := &b.Seen.Jobs[i]
		for _, name := range r.NodeList {
			o.Add(b.Seen.Index[name], now, slurm.Releases(b.Core, r, now))
		}
	}
	TakePlans(b.Core, ProblemOf(b.Core, b.Seen, o, Candidates(b.Core, b.Seen, now)).Plan(statetest.NoX()))
}
