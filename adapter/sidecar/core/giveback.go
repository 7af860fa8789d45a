package core

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A malleable application may give back lent nodes voluntarily (evosctl shrink). That does not
// change its request, and its step continues. The sidecar handles it as an accepted request to
// shrink, and carries it out exactly once even after a restart. It then makes the job no offer for
// a while.

// ownAccord is the reason recorded for such a request.
const ownAccord = "the application asked for it"

// answersFirst handles an open offer or demand before a growth or shrink on demand. An accepted
// offer must be carried out first, and a demand must be answered first.
func (c *Core) answersFirst(k *call, j *job) (carries bool, err error) {
	o := j.offer()
	switch {
	case k.Change.Update != nil || o == nil || j.State != row.Running:
		return false, nil
	case o.State == offerAccepted:
		return true, nil
	case o.demands():
		return false, api.Errorf(api.ErrConflict, "%s must give %s back: answer that (evosctl accept %d)", jobNumber(j.SlurmID), slurmctl.CompressNodes(o.wanted()), o.Nodes)
	}
	return false, nil
}

// givesBack reports whether a change asks only to give back nodes that the job is lent.
func (c *Core) givesBack(req *api.ChangeRequest, j *job) bool {
	sh := req.Shrink
	if sh == nil || req.Update != nil || req.Grow != nil || j.State != row.Running || j.ending || j.isSuspended() {
		return false
	}
	lent := j.lent()
	return len(lent) > 0 && sh.Nodes <= len(lent) && (len(sh.List) == 0 || len(Without(lent, sh.List)) > 0 || len(Without(sh.List, lent)) == 0)
}

// answerGiveBack answers a call that shrinks a job with lent nodes, and reports whether it did. If not, the call must wait.
func (c *Core) answerGiveBack(k *call, j *job) bool {
	refuse := func(err error) bool {
		c.emit(Reply{ID: k.ID, Err: err})
		return true
	}
	list, err := c.toGiveBack(j, k.Change)
	if err != nil {
		return refuse(err)
	}
	if k.Change.DryRun {
		a := c.changeOf(j)
		a.Ready, a.Accepted, a.DryRun, a.Leaving = true, true, true, list
		c.emit(Reply{ID: k.ID, Change: &a})
		return true
	}
	if j.offer() != nil {
		c.closeOffer(j, offerWithdrawn, "the job gives nodes back")
	}
	j.Changes = append(slices.Clone(j.Changes[max(len(j.Changes)-mostChanges+1, 0):]), row.Change{ID: k.Change.ID})
	c.put(j, offer{Kind: malleable.Shrink.String(), Nodes: len(list), List: list, Why: ownAccord})
	o := *j.offer()
	o.State, o.Accepted, o.Answered = offerAccepted, o.Nodes, c.now.Unix()
	c.event(j, "offer accepted", map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": slurmctl.CompressNodes(o.wanted())})
	c.changeOffer(j, o)
	return false
}

// toGiveBack returns the lent nodes that a job gives back, or why it cannot give them back.
func (c *Core) toGiveBack(j *job, req *api.ChangeRequest) ([]string, error) {
	lent, has := c.goFirst(j, c.wants()), len(j.nodes())
	by := req.Shrink.Nodes
	invalid := func(format string, args ...any) ([]string, error) {
		return nil, api.Errorf(api.ErrInvalid, "%s", fmt.Sprintf(format, args...))
	}
	switch {
	case req.From > 0 && req.From != j.Step:
		return nil, api.Errorf(api.ErrConflict, "%s is in step %d, not %d (evaluate what evosctl env prints, and EVO_STEP is right)", jobNumber(j.SlurmID), j.Step, req.From)
	case by != 0 && len(req.Shrink.List) > 0, by == 0 && len(req.Shrink.List) == 0:
		return invalid("set how many nodes to give back, or which")
	case by < 0:
		return invalid("to shrink by %d nodes: want at least 1", by)
	case req.Shrink.For != 0:
		return invalid("--for: the job gives back what it is lent, and may be offered it again any time")
	}
	if named := req.Shrink.List; len(named) > 0 {
		if why := j.whyBound(named); why != "" {
			return invalid("%s and cannot be given back before the end", why)
		}
		if bad := Without(named, lent); len(bad) > 0 {
			return invalid("%s is not lent %s: it gives back first what it is lent, %s", jobNumber(j.SlurmID), slurmctl.CompressNodes(bad), slurmctl.CompressNodes(lent))
		}
		if by = len(slices.Compact(slices.Sorted(slices.Values(named)))); by != len(named) {
			return invalid("a node is listed twice")
		}
		lent = slices.Concat(named, Without(lent, named))
	}
	switch {
	case !j.canReturn(lent[:by]):
		return invalid("to shrink by %d nodes: jobs cannot be resized here, and companions go as a whole", by)
	case by < len(lent) && !j.Malleable.Sizes.Has(has-by):
		return invalid("with %d nodes less the job would have %d, which is none of its sizes (%v)", by, has-by, j.Malleable.Sizes)
	}
	return lent[:by], nil
}
