package act

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// mostFinishing is how often something that a job should finish may fail before the job is let go without it.
const mostFinishing = 3

// LetGo does what Act does while everything is released: it lets all jobs go.
func LetGo(c *state.Core, s *state.Snapshot) {
	for j := range plan.Each(c, slices.Clone(c.Active)) {
		switch {
		case j.Busy || j.Ending || !c.Work.Room():
		case j.Touched.After(s.Taken):
			c.NextCycle = c.Now // the poll does not show what it became
		case !finishes(c, s, j):
			follow.LetGo(c, j)
		case c.Due(c.Now, j.RetryAt):
			ActOn(c, s, j, c.Now)
		}
	}
	adopt.Release(c, s)
}

// finishes reports whether a job has something to finish before it is let go: it runs in a hold, gives nodes back, or
// has more nodes than its step needs and the operator wants them.
func finishes(c *state.Core, s *state.Snapshot, j *state.Job) bool {
	if !j.Runs() || j.Failures >= mostFinishing || follow.IsSuspended(j) {
		return false
	}
	if _, inside := attached(c, s, j); inside {
		return true
	}
	if o := refit.OfferAt(j); o != nil && o.Demands() {
		return true
	}
	if d, _ := c.Config.Drain.Parse(); d.Running != "shrink" || j.Kept != nil {
		return false
	}
	return j.State == row.Waiting && shrinks(c, j) && j.Mode.Resizes || lend.DemandLent(c, s, j)
}
