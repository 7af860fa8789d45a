package hold

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// offerHold returns the hold on nodes that are offered or about to come.
func offerHold(c *state.Core, j *state.Job, now int64) (state.Hold, bool) {
	o := refit.OfferAt(j)
	if o == nil || !o.Grows() || !j.Runs() {
		return state.Hold{}, false
	}
	nodes := msg.Without(o.Wanted(), j.Nodes())
	if len(nodes) == 0 {
		return state.Hold{}, false
	}
	h := state.Hold{Job: j, Step: refit.LentStep, Nodes: nodes, Start: o.Made, End: c.Until(now, o.Deadline) + max(int64(c.Config.Grace/time.Second), 60)}
	h.Users = holdUsers(c, h)
	return h, true
}
