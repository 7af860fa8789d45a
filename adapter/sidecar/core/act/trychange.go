package act

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
)

// LimitNeeded returns the time limit that a waiting job needs, calculated as in evosbatch.
func LimitNeeded(c *state.Core, j *state.Job) time.Duration {
	limit := plan.ExpandLimit(c, j)
	if limit == planner.Infinite {
		limit = 2
	}
	total := int64(time.Minute / time.Second)
	for _, step := range j.Profile {
		total = min(total+min(limit.Stretch(step.Duration), planner.MaxDuration), planner.MaxDuration)
	}
	return time.Duration((total+59)/60) * time.Minute
}
