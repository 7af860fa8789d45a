package plan

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// StillKept reports whether it is too early to try again.
func StillKept(c *state.Core, j *state.Job, now time.Time) bool {
	return j.Kept != nil && (j.Kept.GivenUp || j.Kept.Look || !c.Reached(now, j.Kept.Again))
}
