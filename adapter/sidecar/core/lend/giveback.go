package lend

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// AnswersFirst handles an open offer or demand before a growth or shrink on demand. An accepted
// offer must be carried out first, and a demand must be answered first.
func AnswersFirst(c *state.Core, k *state.OpenCall, j *state.Job) (carries bool, err error) {
	o := refit.OfferAt(j)
	switch {
	case k.Change.Update != nil || o == nil || j.State != row.Running:
		return false, nil
	case o.State == refit.OfferAccepted:
		return true, nil
	case o.Demands():
		return false, api.Errorf(api.ErrConflict, "%s must give %s back: answer that (evosctl accept %d)", msg.JobNumber(j.SlurmID), slurmctl.CompressNodes(o.Wanted()), o.Nodes)
	}
	return false, nil
}

// GivesBack reports whether a change asks only to give back nodes that the job is lent.
func GivesBack(c *state.Core, req *api.ChangeRequest, j *state.Job) bool {
	sh := req.Shrink
	if sh == nil || req.Update != nil || req.Grow != nil || j.State != row.Running || j.Ending || follow.IsSuspended(j) {
		return false
	}
	lent := refit.Lent(j)
	return len(lent) > 0 && sh.Nodes <= len(lent) && (len(sh.List) == 0 || len(msg.Without(lent, sh.List)) > 0 || len(msg.Without(sh.List, lent)) == 0)
}

// AnswerGiveBack answers a call that shrinks a job with lent nodes, and reports whether it did. If not, the call must wait.
func AnswerGiveBack(c *state.Core, k *state.OpenCall, j *state.Job) bool {
	refuse := func(err error) bool {
		c.Emit(msg.Reply{ID: k.ID, Err: err})
		return true
	}
	list, err := toGiveBack(c, j, k.Change)
	if err != nil {
		return refuse(err)
	}
	if k.Change.DryRun {
		a := ChangeOf(c, j)
		a.Ready, a.Accepted, a.DryRun, a.Leaving = true, true, true, list
		c.Emit(msg.Reply{ID: k.ID, Change: &a})
		return true
	}
	if refit.OfferAt(j) != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the job gives nodes back")
	}
	j.Changed(row.Change{ID: k.Change.ID})
	put(c, j, refit.Offer{Kind: malleable.Shrink.String(), Nodes: len(list), List: list, Why: refit.OwnAccord})
	o := *refit.OfferAt(j)
	o.State, o.Accepted, o.Answered = refit.OfferAccepted, o.Nodes, c.Now.Unix()
	c.Event(j, "offer accepted", map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": slurmctl.CompressNodes(o.Wanted())})
	refit.ChangeOffer(c, j, o)
	return false
}

// toGiveBack returns the lent nodes that a job gives back, or why it cannot give them back.
func toGiveBack(c *state.Core, j *state.Job, req *api.ChangeRequest) ([]string, error) {
	lent, has := goFirst(c, j, wants(c)), len(j.Nodes())
	by := req.Shrink.Nodes
	invalid := func(format string, args ...any) ([]string, error) {
		return nil, api.Errorf(api.ErrInvalid, "%s", fmt.Sprintf(format, args...))
	}
	switch {
	case req.From > 0 && req.From != j.Step:
		return nil, api.Errorf(api.ErrConflict, "%s is in step %d, not %d (evaluate what evosctl env prints, and EVO_STEP is right)", msg.JobNumber(j.SlurmID), j.Step, req.From)
	case by != 0 && len(req.Shrink.List) > 0, by == 0 && len(req.Shrink.List) == 0:
		return invalid("set how many nodes to give back, or which")
	case by < 0:
		return invalid("to shrink by %d nodes: want at least 1", by)
	case req.Shrink.For != 0:
		return invalid("--for: the job gives back what it is lent, and may be offered it again any time")
	}
	if named := req.Shrink.List; len(named) > 0 {
		if why := slurm.WhyBound(j, named); why != "" {
			return invalid("%s and cannot be given back before the end", why)
		}
		if bad := msg.Without(named, lent); len(bad) > 0 {
			return invalid("%s is not lent %s: it gives back first what it is lent, %s", msg.JobNumber(j.SlurmID), slurmctl.CompressNodes(bad), slurmctl.CompressNodes(lent))
		}
		if by = len(slices.Compact(slices.Sorted(slices.Values(named)))); by != len(named) {
			return invalid("a node is listed twice")
		}
		lent = slices.Concat(named, msg.Without(lent, named))
	}
	switch {
	case !hold.CanReturn(j, lent[:by]):
		return invalid("to shrink by %d nodes: jobs cannot be resized here, and companions go as a whole", by)
	case by < len(lent) && !j.Malleable.Sizes.Has(has-by):
		return invalid("with %d nodes less the job would have %d, which is none of its sizes (%v)", by, has-by, j.Malleable.Sizes)
	}
	return lent[:by], nil
}
