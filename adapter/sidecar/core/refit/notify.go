package refit

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Notify marks the calls that wait for a change of the job, so that the core tries to answer them.
func Notify(c *state.Core, j *state.Job) {
	for _, k := range c.Calling {
		k.Again = k.Again || k.Of == j
	}
}

// ChangeProfile writes a job's changed profile to the database.
func ChangeProfile(c *state.Core, j *state.Job) {
	c.Emit(msg.SaveProfile{j.ID, j.Profile})
	if known, ok := c.Known[j.BaseID()]; ok {
		known.Steps = len(j.Profile)
		c.Known[j.BaseID()] = known
	}
}
