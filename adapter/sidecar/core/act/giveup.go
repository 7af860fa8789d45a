package act

import (
	"errors"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// mayGiveUp gives up the growth to a number of nodes if it has failed for too long, or will
// always fail.
func mayGiveUp(c *state.Core, j *state.Job, to int, err error) {
	if err == nil || !errors.Is(err, msg.ErrNeverMerged) && (j.Failing.IsZero() || c.Now.Sub(j.Failing) < c.Config.GiveUp) {
		return
	}
	text := fmt.Sprintf("the growth to %d nodes was given up: %v", to, err)
	c.Event(j, "given up", map[string]any{"nodes": to, "failures": j.Failures, "error": err.Error()})
	c.LogJob(j).WithError(err).Warn("giving up a growth: the job keeps its nodes")
	if len(j.Expanders) > 0 && adopt.CancelBeside(c, "an expander", j.Expanders...) {
		j.ExpandedBy(nil)
	}
	j.KeepBack(&state.KeptBack{Text: text + "; it is tried again when the job's script calls evosctl next", GivenUp: true})
	j.Succeeded()
	if j.State != row.Waiting {
		return // it only replaced lost nodes: no call waits
	}
	j.StayInStep()
	follow.GrowthFailed(c, j)
	c.Save(j)
	j.Deny(text, !waitedFor(c, j)) // waiting calls report it
	refit.Notify(c, j)
}

// waitedFor reports whether a call waits for a change of the job.
func waitedFor(c *state.Core, j *state.Job) bool {
	return slices.ContainsFunc(c.Calling, func(k *state.OpenCall) bool { return k.Of == j })
}
