package lend

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// put makes an offer to a job.
func put(c *state.Core, j *state.Job, o refit.Offer) {
	o.ID = c.WallSecond(c.Now.Unix())
	if n := len(j.Offers); n > 0 {
		o.ID = max(o.ID, j.Offers[n-1].ID+1)
	}
	o.Made, o.Deadline, o.Had, o.State = c.Now.Unix(), c.Now.Add(refit.GraceOf(c, j)).Unix(), len(j.Nodes()), refit.OfferOpen
	detail := map[string]any{"nodes": o.Nodes, "list": slurmctl.CompressNodes(o.Wanted()), "seconds": o.Deadline - o.Made, "why": o.Why}
	kind := "offered"
	switch {
	case o.Mandatory:
		kind = "demanded"
	case !o.Grows():
		kind = "asked for"
	}
	if j.State == row.Waiting { // nothing runs on them: they go at once
		o.State, o.Accepted, o.Note = refit.OfferAccepted, o.Nodes, "the step had ended"
	}
	j.AddOffer(row.Offer(o), func(old row.Offer) bool { one := refit.Offer(old); return one.Binds(j) })
	c.Save(j)
	c.Event(j, kind, detail)
	refit.Notify(c, j)
}

// MayNotLend ends a growth beyond the plan that Slurm does not allow.
func MayNotLend(c *state.Core, j *state.Job, got msg.Grown, err error) {
	if o := refit.OfferAt(j); o == nil || !o.Grows() {
		return
	}
	switch {
	case got.Limit != "":
		GiveLendingUp(c, j, "Slurm allows no more at present: "+got.Limit)
	case errors.Is(err, msg.ErrNeverMerged), err != nil && !state.Outage(err) && j.Failures >= mostLendings:
		GiveLendingUp(c, j, err.Error())
	}
}

// mostLendings is how often the sidecar tries a growth beyond the plan.
const mostLendings = 3

// GiveLendingUp ends an accepted growth that does not succeed.
func GiveLendingUp(c *state.Core, j *state.Job, why string) {
	if len(j.Expanders) > 0 && adopt.CancelBeside(c, "an expander", j.Expanders...) {
		j.ExpandedBy(nil)
	}
	j.Succeeded()
	refit.CloseOffer(c, j, refit.OfferFailed, why)
}

// TellOffer answers a call that waits for an offer, and reports false if there is none.
func TellOffer(c *state.Core, k *state.OpenCall) bool {
	j, err := follow.Callee(c, k.Job)
	switch {
	case err != nil:
	case !j.Mode.Resizes:
		err = api.Errorf(api.ErrConflict, "%s is a chain: its steps are not resized while they go on", msg.JobNumber(j.SlurmID))
	case !adopt.IsMalleable(j):
		err = api.Errorf(api.ErrConflict, "%s is not malleable (evosbatch --malleable=MIN-MAX): it is offered nothing", msg.JobNumber(j.SlurmID))
	}
	if err != nil {
		c.Emit(msg.Reply{ID: k.ID, Err: err})
		return true
	}
	k.Of = j
	if n := len(j.Offers); j.Silences > 0 && n > 0 && j.Offers[n-1].ID > j.ToldOffer { // the application listens now
		j.Silences, j.OfferAfter = 0, c.Now
	}
	o := refit.OfferAt(j)
	if o == nil || o.State != refit.OfferOpen || o.ID <= k.Offer.After || j.State != row.Running {
		return false
	}
	j.ToldOffer = o.ID
	a := OfferShown(c, *o)
	a.Ready, a.Job = true, j.SlurmID
	c.Emit(msg.Reply{ID: k.ID, Offer: &a})
	return true
}

// demanded returns what a job must give back, or nil if that is nothing.
func demanded(c *state.Core, j *state.Job) *api.Demand {
	o := refit.OfferAt(j)
	if o == nil || !o.Demands() {
		return nil
	}
	leaving := msg.Common(o.Wanted(), j.Nodes())
	if len(leaving) == 0 {
		return nil
	}
	return &api.Demand{Offer: o.ID, Nodes: len(leaving), Leaving: leaving, Deadline: c.Wall(time.Unix(o.Deadline, 0)), Why: o.Why}
}

// OfferShown converts an offer to its API form.
func OfferShown(c *state.Core, o refit.Offer) api.Offer {
	a := api.Offer{ID: o.ID, Kind: o.Kind, Mandatory: o.Mandatory, Nodes: o.Nodes, Has: o.Had, NodeList: slurmctl.CompressNodes(o.List[:o.Nodes]),
		Why: o.Why, Made: c.Wall(time.Unix(o.Made, 0)), Deadline: c.Wall(time.Unix(o.Deadline, 0)), State: o.State, Accepted: o.Accepted, Enforced: o.Enforced, Note: o.Note}
	if !o.Grows() {
		a.Further = o.List[o.Nodes:]
		if !o.Mandatory && o.Nodes > 1 {
			a.Order = o.List[:o.Nodes]
		}
	}
	if o.Until != 0 {
		a.Until = c.Wall(time.Unix(o.Until, 0))
	}
	if o.Back != 0 {
		a.Back = c.Wall(time.Unix(o.Back, 0))
	}
	if o.Answered != 0 {
		a.Answered = c.Wall(time.Unix(o.Answered, 0))
	}
	if o.Closed != 0 {
		a.Closed = c.Wall(time.Unix(o.Closed, 0))
	}
	return a
}

// TakeAnswer processes an application's answer to an offer. It reports false while an accepted change is in
// progress.
func TakeAnswer(c *state.Core, k *state.OpenCall) bool {
	j, err := follow.Callee(c, k.Job)
	if err != nil {
		return replyAnswer(c, k, api.Answer{}, err)
	}
	k.Of = j
	conflict := func(why string) bool {
		return replyAnswer(c, k, api.Answer{}, api.Errorf(api.ErrConflict, "offer %d: %s", k.Answer.Offer, why))
	}
	i := slices.IndexFunc(j.Offers, func(o row.Offer) bool { return o.ID == k.Answer.Offer })
	if i < 0 {
		return conflict(msg.JobNumber(j.SlurmID) + " has no such offer any more")
	}
	o := refit.Offer(j.Offers[i])
	a := api.Answer{Job: j.SlurmID, Offer: o.ID, Kind: o.Kind, Accepted: o.Accepted, Note: o.Note}
	switch {
	case o.State == refit.OfferDone && !o.Enforced:
		has := Allocation(c, j)
		a.Has = &has
		return replyAnswer(c, k, a, nil)
	case o.State == refit.OfferDeclined:
		return replyAnswer(c, k, a, nil)
	}
	if why := closed(c, j, i, k.Answer.Accept); why != "" {
		return conflict(why)
	}
	switch {
	case o.State == refit.OfferAccepted:
		return false
	case k.Answer.Accept == 0:
		return decline(c, k, j, o, a)
	}
	if err := follow.MayNotGrow(j, k); err != nil && o.Grows() {
		return replyAnswer(c, k, api.Answer{}, err)
	}
	if err := accept(c, k, j, o); err != nil {
		return replyAnswer(c, k, a, err)
	}
	return false
}

// replyAnswer answers a call with what came of its answer to an offer.
func replyAnswer(c *state.Core, k *state.OpenCall, a api.Answer, err error) bool {
	a.Ready = err == nil
	c.Emit(msg.Reply{ID: k.ID, Answer: &a, Err: err})
	return true
}

// closed returns why an offer cannot be answered any more, or "". An application that accepts nodes may have lost the right to them.
func closed(c *state.Core, j *state.Job, i, nodes int) string {
	o := refit.Offer(j.Offers[i])
	switch {
	case o.State == refit.OfferFailed:
		return "the job keeps what it has: " + o.Note
	case o.Enforced:
		return fmt.Sprintf("%s were taken from the job: %s", slurmctl.CompressNodes(o.WantedAtEnd()), o.Note)
	case o.Over():
		return "it is over: " + o.Note
	case o.State == refit.OfferAccepted:
		return ""
	case o.Grows() && nodes > 0 && withdrawDenied(c, j):
		return "it is over: " + j.Offers[i].Note
	case j.State != row.Running:
		return "the step has ended"
	}
	return ""
}

// decline takes over that an application declines an offer, and answers it.
func decline(c *state.Core, k *state.OpenCall, j *state.Job, o refit.Offer, a api.Answer) bool {
	if !o.Mandatory {
		refit.CloseOffer(c, j, refit.OfferDeclined, "declined")
		return replyAnswer(c, k, a, nil)
	}
	if o.Note == "" {
		o.Note = "declined"
		c.Event(j, "offer declined", map[string]any{"kind": o.Kind, "nodes": o.Nodes, "list": slurmctl.CompressNodes(o.Wanted()), "why": "it is mandatory"})
		refit.ChangeOffer(c, j, o)
	}
	a.Note = fmt.Sprintf("it is mandatory: %s are taken from the job at %s", slurmctl.CompressNodes(o.Wanted()), state.ClockText(c, time.Unix(o.Deadline, 0)))
	return replyAnswer(c, k, a, nil)
}

// accept takes over that an application accepts an offer, or returns why it cannot.
func accept(c *state.Core, k *state.OpenCall, j *state.Job, o refit.Offer) error {
	err := acceptable(c, j, &o, k.Answer.Accept)
	if err == nil {
		o.Back, err = promised(c, j, &o, k.Answer.Until)
	}
	if err != nil {
		return err
	}
	o.State, o.Accepted, o.Answered, o.Note = refit.OfferAccepted, k.Answer.Accept, c.Now.Unix(), ""
	detail := map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": slurmctl.CompressNodes(o.Wanted())}
	if o.Back != 0 {
		detail["until"] = state.ClockText(c, time.Unix(o.Back, 0))
	}
	c.Event(j, "offer accepted", detail)
	refit.ChangeOffer(c, j, o)
	return nil
}

// promised returns the Unix second by which an application gives back what it accepts, 0 if it does not say, or why
// it cannot promise that. The time is one of Slurm's clock.
func promised(c *state.Core, j *state.Job, o *refit.Offer, until time.Time) (int64, error) {
	if until.IsZero() {
		return 0, nil
	}
	c.In(&until)
	least := c.Now.Add(refit.Recall(c, j))
	switch back := until.Unix(); {
	case !o.Grows():
		return 0, api.Errorf(api.ErrInvalid, "--until is for nodes that are offered, and these are given back")
	case back < least.Unix():
		return 0, api.Errorf(api.ErrInvalid, "to give the nodes back by %s: the earliest is %s, since the job has %v to give them back", state.ClockText(c, until), state.ClockText(c, least), refit.GraceOf(c, j))
	case o.Until != 0 && back > o.Until:
		return 0, api.Errorf(api.ErrInvalid, "to give the nodes back by %s: they are planned for others, and must be left by %s", state.ClockText(c, until), state.ClockText(c, time.Unix(o.Until, 0)))
	default:
		return back, nil
	}
}

// acceptable checks how many nodes an application accepts.
func acceptable(c *state.Core, j *state.Job, o *refit.Offer, nodes int) error {
	size := len(j.Nodes()) + nodes
	if !o.Grows() {
		size = len(msg.Without(j.Nodes(), o.List[:min(max(nodes, 0), len(o.List))])) // it may have lost some
	}
	switch {
	case nodes < 0:
		return api.Errorf(api.ErrInvalid, "to accept %d nodes: want at least 1, or 0 to decline", nodes)
	case o.Grows() && nodes > o.Nodes:
		return api.Errorf(api.ErrInvalid, "cannot accept %d nodes: the offer has %d", nodes, o.Nodes)
	case !o.Grows() && nodes > len(o.List):
		return api.Errorf(api.ErrInvalid, "cannot give %d nodes back: the job can give %d and keep its smallest number", nodes, len(o.List))
	case o.Mandatory && nodes < o.Nodes:
		return api.Errorf(api.ErrInvalid, "cannot give only %d nodes back: the demand is for %d", nodes, o.Nodes)
	case refit.LeavesAll(j, o):
		return nil
	case !o.Grows() && !hold.CanReturn(j, o.List[:nodes]):
		return api.Errorf(api.ErrInvalid, "to give %d nodes back: jobs cannot be resized here, and companions go as a whole", nodes)
	case !j.Malleable.Sizes.Has(size):
		return api.Errorf(api.ErrInvalid, "with %d nodes the job would have %d, which is none of its sizes (%v)", nodes, size, j.Malleable.Sizes)
	}
	return nil
}
