package follow

import (
	"errors"
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Believe accepts the step that the application names, if the sidecar could only infer it. If the application
// names a step before the one in which others changed the coming steps, it has only not heard of the change.
func Believe(c *state.Core, j *state.Job, step int) {
	if !guessed(j) || step < max(j.Reached, j.Guess) || step > len(j.Profile) {
		return
	}
	j.Guessed(0)
	if step == j.Step {
		c.Save(j)
		return
	}
	const why = "the application is in another step than was inferred"
	c.LogJob(j).WithField("said", step).Warn(why)
	if j.State == row.Waiting && step > j.Step {
		j.InStep(j.StepStarted)
	}
	correct(c, j, step, why)
}

// BelieveEnd does what Believe does for the end of a step. A job that waits has ended its step before, but by a copy of
// the database it may wait for a step that another sidecar has led it past.
func BelieveEnd(c *state.Core, j *state.Job, step int) {
	if j.State == row.Running || j.State == row.Waiting && step > j.Step {
		Believe(c, j, step)
	}
}

// correct sets the step that a running job is really in.
func correct(c *state.Core, j *state.Job, step int, why string) {
	adopt.Recovered(c, j, step)
	if refit.OfferAt(j) != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the step has ended")
	}
	c.StorePlan(j, nil)
	c.Save(j)
	c.Event(j, "step corrected", map[string]any{"step": step})
	if c.Snapshot != nil {
		refit.Refit(c, c.Snapshot, j, c.Now.Unix(), why)
	}
}

// MayLeave gives up a queued job that Slurm has refused to start for give_up.
func MayLeave(c *state.Core, j *state.Job, err error) {
	if err == nil || state.Outage(err) || j.State != row.Queued || j.Failing.IsZero() || c.Now.Sub(j.Failing) < c.Config.GiveUp {
		return
	}
	r := j.Record
	text := fmt.Sprintf("Slurm has refused to start it for %v: %v", c.Config.GiveUp, err)
	c.Event(j, "given up", map[string]any{"failures": j.Failures, "error": err.Error()})
	adopt.RefuseAtLast(c, &r, errors.New(text))
	end(c, j, slurmctl.Job{})
}
