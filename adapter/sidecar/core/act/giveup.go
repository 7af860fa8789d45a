package act

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
	again := &state.KeptBack{Text: text + "; it is tried again when the job's script calls evosctl next", GivenUp: true}
	detail := map[string]any{"nodes": to, "failures": j.Failures, "error": err.Error()}
	onDemand := j.State == row.Waiting && state.GrowthUndone(j.Job, j.Step)
	if onDemand {
		again, detail["profile"] = nil, j.Growing.Profile.String()
	}
	c.Event(j, "given up", detail)
	c.LogJob(j).WithError(err).Warn("giving up a growth: the job keeps its nodes")
	if len(j.Expanders) > 0 && adopt.CancelBeside(c, "an expander", j.Expanders...) {
		j.ExpandedBy(nil)
	}
	j.KeepBack(again)
	j.Succeeded()
	if j.State != row.Waiting {
		return // it only replaced lost nodes: no call waits
	}
	j.StayInStep()
	if onDemand {
		undoGrowth(c, j)
		text += fmt.Sprintf("; step %d lasts until %s again", j.Step, state.ClockText(c, time.Unix(j.Expected(), 0)))
	}
	c.Save(j)
	j.Deny(text, !waitedFor(c, j)) // waiting calls report it
	refit.Notify(c, j)
}

// undoGrowth gives a job back the profile, and waiting jobs the time, that its failed growth on demand took.
func undoGrowth(c *state.Core, j *state.Job) {
	state.UndoGrowth(j, c.Now)
	follow.GrowthFailed(c, j)
	refit.ChangeProfile(c, j)
	c.StorePlan(j, nil) // no part of it applies
	refit.Refit(c, c.Snapshot, j, c.Now.Unix(), "its growth was given up")
}

// waitedFor reports whether a call waits for a change of the job.
func waitedFor(c *state.Core, j *state.Job) bool {
	return slices.ContainsFunc(c.Calling, func(k *state.OpenCall) bool { return k.Of == j })
}
