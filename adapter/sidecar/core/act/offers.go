package act

import (
	"cmp"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// carryOffer advances a job's offer, if there is one. It reports whether the job must not do anything else
// now.
func carryOffer(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) bool {
	o := refit.OfferAt(j)
	switch {
	case o == nil:
		return false
	case o.State == refit.OfferAccepted:
		return carryAccepted(c, s, j, o)
	case j.State == row.Running && isGone(j, o):
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the job has these nodes no more")
		return false
	case j.State == row.Waiting && !o.Mandatory:
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the step has ended")
		return false
	case j.State == row.Waiting:
		one := *o
		one.State, one.Accepted, one.Note = refit.OfferAccepted, one.Nodes, "the step had ended"
		refit.ChangeOffer(c, j, one)
		return carryOffer(c, s, j, now)
	case !o.Mandatory && c.DueSecond(now.Unix(), o.Deadline):
		refit.CloseOffer(c, j, refit.OfferUnanswered, "no answer")
		return false
	case o.Mandatory:
		return carryDemand(c, s, j, o, now)
	}
	return false
}

// carryDemand does what carryOffer does, for an open demand.
func carryDemand(c *state.Core, s *state.Snapshot, j *state.Job, o *refit.Offer, now time.Time) bool {
	switch {
	case c.DueSecond(now.Unix(), o.Deadline):
		one := *o
		one.State, one.Accepted, one.Enforced = refit.OfferAccepted, one.Nodes, true
		one.Note = cmp.Or(one.Note, "no answer")
		c.Event(j, "taken", map[string]any{"nodes": one.Nodes, "list": slurmctl.CompressNodes(one.Wanted()), "why": one.Note})
		c.LogJob(j).WithField("nodes", slurmctl.CompressNodes(one.Wanted())).Warn("taking nodes that were demanded back: " + one.Note)
		refit.ChangeOffer(c, j, one)
		return carryOffer(c, s, j, now)
	case !o.Warned && (o.Note != "" || c.DueSecond(now.Unix(), (o.Made+o.Deadline+1)/2)):
		if !warn(c, j) {
			return false
		}
		one := *o
		one.Warned = true
		refit.ChangeOffer(c, j, one)
		return true
	}
	return false
}

// isGone reports whether a job has none of the nodes any more that it is to give back, for example because Slurm preempted a
// companion.
func isGone(j *state.Job, o *refit.Offer) bool {
	return !o.Grows() && len(msg.Common(o.Wanted(), j.Nodes())) == 0
}

// carryAccepted does what carryOffer does, for an accepted offer.
func carryAccepted(c *state.Core, s *state.Snapshot, j *state.Job, o *refit.Offer) bool {
	if o.Grows() {
		if missing := msg.Without(o.Wanted(), j.Nodes()); len(missing) > 0 {
			lendNodes(c, s, j, o, missing)
			return true
		}
	} else if refit.LeavesAll(j, o) {
		leaveAll(c, j)
		return true
	} else if surplus := hold.CanGive(c, j, msg.Common(o.Wanted(), j.Nodes())); len(surplus) > 0 {
		shrink(c, j, surplus)
		return true
	}
	refit.CloseOffer(c, j, refit.OfferDone, "")
	return false
}

// lendNodes brings a job nodes beyond its plan, from the hold on them.
func lendNodes(c *state.Core, s *state.Snapshot, j *state.Job, o *refit.Offer, missing []string) {
	if len(j.Expanders) == 0 && (slurm.IsSuspect(c, missing) || !slurm.Free(s, missing)) {
		refit.CloseOffer(c, j, refit.OfferFailed, "the nodes are not free any more")
		return
	}
	if c.ReachedSecond(c.Now.Unix(), o.Answered+int64(c.Config.GiveUp/time.Second)+1) {
		lend.GiveLendingUp(c, j, "the nodes did not come")
		return
	}
	if j.Asked == nil {
		j.WaitsFor(state.Because(state.WhyRequestUnread))
		return
	}
	if why := notReady(c, s, j); why != "" {
		j.WaitsFor(state.Saying(state.WhyExpanderUnready, why))
		return
	}
	if len(j.Expanders) == 0 && !answered(c, s, j, missing) {
		return
	}
	if r, ok := hold.HoldFor(c, j, refit.LentStep); len(j.Expanders) == 0 && c.Due(c.Now, j.HoldRetry) && (!ok || len(msg.Without(missing, r.Nodes)) > 0) {
		j.WaitsFor(state.Because(state.WhyHeldSoon))
		return
	}
	bring(c, j, refit.LentStep, missing)
}
