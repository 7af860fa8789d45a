package slurm

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Reach returns how many seconds away the job's time limit in Slurm is.
func Reach(c *state.Core, j *state.Job, now int64) int64 {
	if j.Record.EndTime.IsZero() || j.Record.TimeLimit == slurmctl.Unlimited {
		return Seconds(j.Record.TimeLimit)
	}
	return c.Since(now, j.Record.EndTime.Unix()) - now
}
