package adopt

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Without adds the nodes that the job avoids to the nodes that it excludes itself.
func Without(j *state.Job, excluded []string) []string {
	if len(j.Shunned) == 0 {
		return excluded
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(excluded, slices.Collect(maps.Keys(j.Shunned))))))
}

const (
	// StartWait is how long Slurm may take to start a released job.
	StartWait = time.Minute
	// Parked is how far in the future the start of a job without a plan is.
	Parked = 10 * 365 * 24 * time.Hour
)
