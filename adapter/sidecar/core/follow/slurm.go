package follow

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// startedAt returns when Slurm started a running job, by the current clock. Slurm's time is by the
// clock of that moment, which may have been set since. No job has started in the future, or
// before it was last seen queued.
func startedAt(r *slurmctl.Job, queued, now time.Time) time.Time {
	switch {
	case r.StartTime.After(now):
		return now
	case !queued.IsZero() && r.StartTime.Before(queued.Add(-state.ClockSlack)):
		return queued
	}
	return r.StartTime
}
