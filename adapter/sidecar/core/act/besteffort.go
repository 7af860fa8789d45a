package act

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// leaveAll has a best-effort job whose last nodes are wanted leave all of them: it is requeued, or cancelled if its user wants that.
func leaveAll(c *state.Core, j *state.Job) {
	if j.Malleable.BestEffort == row.Cancelled {
		cancelAll(c, j, "its user wants it to end when its last nodes are wanted (--no-requeue)")
		return
	}
	c.Do(j, "requeue", "last nodes", state.KindLeaveAll, msg.Requeue{Job: j.Record.ID, Beside: slurmIDs(j)[1:]}, state.Args{})
}

// cancelAll cancels all Slurm jobs of a best-effort job whose last nodes are wanted.
func cancelAll(c *state.Core, j *state.Job, why string) {
	c.Event(j, "cancelled", map[string]any{"why": why})
	c.LogJob(j).Info("cancelling a best-effort job whose last nodes are wanted: " + why)
	c.Do(j, "cancel", "last nodes", state.KindEnforce, msg.Cancel{Jobs: slurmIDs(j)}, state.Args{})
}

// SettleLeaveAll is called when a best-effort job was requeued, or when that failed. One that Slurm does not requeue is cancelled: others
// wait for its nodes.
func SettleLeaveAll(c *state.Core, j *state.Job, _ *state.Pending, o msg.Outcome) {
	switch {
	case o.Err == nil, errors.Is(o.Err, slurmctl.ErrAlreadyDone), errors.Is(o.Err, slurmctl.ErrUnknownJob):
		j.Cancelled(true)
		if refit.OfferAt(j) != nil {
			refit.CloseOffer(c, j, refit.OfferDone, "")
		}
	case state.Outage(o.Err):
		j.WaitUntil(c.Now.Add(time.Second))
	default:
		cancelAll(c, j, "Slurm does not requeue it: "+o.Err.Error())
	}
}
