package act

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// waitedFor reports whether a call waits for a change of the job.
func waitedFor(c *state.Core, j *state.Job) bool {
	return slices.ContainsFunc(c.Calling, func(k *state.OpenCall) bool { return k.Of == j })
}
