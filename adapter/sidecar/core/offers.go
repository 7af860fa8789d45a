package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The sidecar proposes every change of a malleable job to its application: it offers nodes, or asks or demands
// to give some back. One offer is open at a time. The application waits for it (evosctl wait-event) and
// answers (accept, decline). It stops using nodes before it accepts to give them back.
//
//	an offer, or a request to shrink that is not mandatory
//	  accepted     the nodes come or go while the step continues; then the answer returns
//	  declined     nothing happens; the job gets no offer for a while
//	  no answer    by the deadline: withdrawn, as when others need the nodes
//	a mandatory shrink
//	  accepted     the nodes go
//	  declined,    the sidecar signals the job at once, or after half of its time; at the deadline it
//	  no answer    takes the nodes, with what still runs there
//
// Offers and answers are rows in the database. A repeated answer (because it was lost, or the sidecar was
// killed) counts once. An accepted change continues after a restart, from what the job has then.

const (
	offerOpen       = "open"
	offerAccepted   = "accepted"   // accepted and in progress
	offerDone       = "done"       // the nodes have come or gone
	offerDeclined   = "declined"   //
	offerWithdrawn  = "withdrawn"  //
	offerUnanswered = "unanswered" //
	offerFailed     = "failed"     // accepted, but it failed
)

// mostOffers is how many offers of a job the sidecar keeps, to count each answer once.
const mostOffers = 4

// offer is a row.Offer with methods.
type offer row.Offer

// offer returns a copy of the open or accepted offer, or nil if there is none. The caller must not change its
// lists.
func (j *job) offer() *offer {
	if n := len(j.Offers); n > 0 {
		if o := offer(j.Offers[n-1]); !o.over() {
			return &o
		}
	}
	return nil
}

func (o *offer) over() bool { return o.State != offerOpen && o.State != offerAccepted }

func (o *offer) grows() bool { return o.Kind == malleable.Grow.String() }

// demands reports whether the offer will certainly bring nodes back.
func (o *offer) demands() bool { return !o.grows() && (o.Mandatory || o.State == offerAccepted) }

// wanted returns the nodes that will come or go.
func (o *offer) wanted() []string {
	if o.State == offerAccepted {
		return o.List[:o.Accepted]
	}
	return o.List[:o.Nodes]
}

// changeOffer replaces an offer of a job.
func (c *Core) changeOffer(j *job, o offer) {
	j.Offers = slices.Clone(j.Offers)
	for i := range j.Offers {
		if j.Offers[i].ID == o.ID {
			j.Offers[i] = row.Offer(o)
		}
	}
	c.save(j)
	c.notify(j)
}

// put makes an offer to a job.
func (c *Core) put(j *job, o offer) {
	o.ID = c.wallSecond(c.now.Unix())
	if n := len(j.Offers); n > 0 {
		o.ID = max(o.ID, j.Offers[n-1].ID+1)
	}
	o.Made, o.Deadline, o.Had, o.State = c.now.Unix(), c.now.Add(c.graceOf(j)).Unix(), len(j.nodes()), offerOpen
	detail := map[string]any{"nodes": o.Nodes, "list": slurmctl.CompressNodes(o.wanted()), "seconds": o.Deadline - o.Made, "why": o.Why}
	kind := "offered"
	switch {
	case o.Mandatory:
		kind = "demanded"
	case !o.grows():
		kind = "asked for"
	}
	if j.State == row.Waiting { // nothing runs on them: they go at once
		o.State, o.Accepted, o.Note = offerAccepted, o.Nodes, "the step had ended"
	}
	j.Offers = append(slices.Clone(j.Offers[max(len(j.Offers)-mostOffers+1, 0):]), row.Offer(o))
	c.save(j)
	c.event(j, kind, detail)
	c.notify(j)
}

// closeOffer ends the job's offer.
func (c *Core) closeOffer(j *job, state, note string) {
	o := *j.offer()
	list := slurmctl.CompressNodes(o.wanted())
	o.State, o.Closed = state, c.now.Unix()
	if note != "" {
		o.Note = note
	}
	detail := map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": list}
	kind := map[string]string{offerDone: "given back", offerDeclined: "offer declined", offerFailed: "offer failed"}[state]
	switch {
	case kind == "":
		kind = "offer withdrawn"
		detail["nodes"], detail["why"] = o.Nodes, note
	case state == offerDone && o.grows():
		kind = "lent"
	case state != offerDone:
		detail["nodes"], detail["why"] = o.Nodes, o.Note
	}
	again := settled
	if o.Why == ownAccord {
		again = declinedFor
	}
	switch state {
	case offerDone:
		if !o.Enforced {
			j.silences = 0
		}
	case offerDeclined, offerFailed, offerUnanswered:
		again = min(declinedFor<<min(j.silences, 8), mostDeclinedFor)
		j.silences++
	}
	j.offerAfter = c.now.Add(again)
	if j.State == row.Running {
		j.reason = reason{}
	}
	c.event(j, kind, detail)
	c.changeOffer(j, o)
}

const (
	// settled is how long the sidecar leaves a job alone after a change; declinedFor is how long after it declined
	// or did not answer, and mostDeclinedFor is the longest such time after repeated ones.
	settled         = 5 * time.Second
	declinedFor     = time.Minute
	mostDeclinedFor = 10 * time.Minute
)

// carryOffer advances a job's offer, if there is one. It reports whether the job must not do anything else
// now.
func (c *Core) carryOffer(s *snapshot, j *job, now time.Time) bool {
	o := j.offer()
	switch {
	case o == nil:
		return false
	case o.State == offerAccepted:
		return c.carryAccepted(s, j, o)
	case j.State == row.Waiting && !o.Mandatory:
		c.closeOffer(j, offerWithdrawn, "the step has ended")
		return false
	case j.State == row.Waiting:
		one := *o
		one.State, one.Accepted, one.Note = offerAccepted, one.Nodes, "the step had ended"
		c.changeOffer(j, one)
		return c.carryOffer(s, j, now)
	case !o.Mandatory && now.Unix() >= o.Deadline:
		c.closeOffer(j, offerUnanswered, "no answer")
		return false
	case o.Mandatory && now.Unix() >= o.Deadline:
		one := *o
		one.State, one.Accepted, one.Enforced = offerAccepted, one.Nodes, true
		one.Note = cmp.Or(one.Note, "no answer")
		c.event(j, "taken", map[string]any{"nodes": one.Nodes, "list": slurmctl.CompressNodes(one.wanted()), "why": one.Note})
		c.logJob(j).WithField("nodes", slurmctl.CompressNodes(one.wanted())).Warn("taking nodes that were demanded back: " + one.Note)
		c.changeOffer(j, one)
		return c.carryOffer(s, j, now)
	case o.Mandatory && !o.Warned && (o.Note != "" || 2*now.Unix() >= o.Made+o.Deadline):
		one := *o
		one.Warned = true
		c.changeOffer(j, one)
		if c.cfg.OverrunSignal == "" {
			return false
		}
		c.signal(j, KindDemand)
		return true
	}
	return false
}

// carryAccepted does what carryOffer does, for an accepted offer.
func (c *Core) carryAccepted(s *snapshot, j *job, o *offer) bool {
	if o.grows() {
		if missing := Without(o.wanted(), j.nodes()); len(missing) > 0 {
			c.lend(s, j, o, missing)
			return true
		}
	} else if surplus := c.canGive(j, common(o.wanted(), j.nodes())); len(surplus) > 0 {
		c.shrink(j, surplus)
		return true
	}
	c.closeOffer(j, offerDone, "")
	return false
}

// offerDue returns when the offer needs attention, or zero if it does not.
func (j *job) offerDue() time.Time {
	o := j.offer()
	if o == nil || o.State != offerOpen {
		return time.Time{}
	}
	if o.Mandatory && !o.Warned && o.Note == "" {
		return time.Unix((o.Made+o.Deadline+1)/2, 0)
	}
	return time.Unix(o.Deadline, 0)
}

// lend brings a job nodes beyond its plan, from the hold on them.
func (c *Core) lend(s *snapshot, j *job, o *offer, missing []string) {
	if len(j.expanders) == 0 && (c.isSuspect(missing) || !s.free(missing)) {
		c.closeOffer(j, offerFailed, "the nodes are not free any more")
		return
	}
	if late := c.now.Unix() - o.Answered; late > int64(c.cfg.GiveUp/time.Second) {
		c.giveLendingUp(j, "the nodes did not come")
		return
	}
	if j.asked == nil {
		j.reason = because(whyRequestUnread)
		return
	}
	if why := c.notReady(s, j); why != "" {
		j.reason = saying(whyExpanderUnready, why)
		return
	}
	if r, ok := c.holdFor(j, lentStep); len(j.expanders) == 0 && !j.holdRetry.After(c.now) && (!ok || len(Without(missing, r.Nodes)) > 0) {
		j.reason = because(whyHeldSoon)
		return
	}
	c.bring(j, lentStep, missing)
}

// mayNotLend ends a growth beyond the plan that Slurm does not allow.
func (c *Core) mayNotLend(j *job, got Grown, err error) {
	if o := j.offer(); o == nil || !o.grows() {
		return
	}
	switch {
	case got.Limit != "":
		c.giveLendingUp(j, "Slurm allows no more at present: "+got.Limit)
	case errors.Is(err, ErrNeverMerged), err != nil && !outage(err) && j.failures >= mostLendings:
		c.giveLendingUp(j, err.Error())
	}
}

// mostLendings is how often the sidecar tries a growth beyond the plan.
const mostLendings = 3

// giveLendingUp ends an accepted growth that does not succeed.
func (c *Core) giveLendingUp(j *job, why string) {
	if len(j.expanders) > 0 && c.cancelBeside("an expander", j.expanders...) {
		j.expanders = nil
	}
	j.failures, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
	c.closeOffer(j, offerFailed, why)
}

// offerHold returns the hold on nodes that are offered or about to come.
func (c *Core) offerHold(j *job, now int64) (hold, bool) {
	o := j.offer()
	if o == nil || !o.grows() || !j.runs() {
		return hold{}, false
	}
	nodes := Without(o.wanted(), j.nodes())
	if len(nodes) == 0 {
		return hold{}, false
	}
	h := hold{job: j, step: lentStep, nodes: nodes, start: o.Made, end: max(o.Deadline, now) + max(int64(c.cfg.Grace/time.Second), 60)}
	h.users = c.holdUsers(h)
	return h, true
}

// tellOffer answers a call that waits for an offer, and reports false if there is none.
func (c *Core) tellOffer(k *call) bool {
	j, err := c.callee(k.Job)
	switch {
	case err != nil:
	case !j.mode.resizes:
		err = api.Errorf(api.ErrConflict, "%s is a chain: its steps are not resized while they go on", jobNumber(j.SlurmID))
	case !j.isMalleable():
		err = api.Errorf(api.ErrConflict, "%s is not malleable (evosbatch --malleable=MIN-MAX): it is offered nothing", jobNumber(j.SlurmID))
	}
	if err != nil {
		c.emit(Reply{ID: k.ID, Err: err})
		return true
	}
	k.job = j
	if n := len(j.Offers); j.silences > 0 && n > 0 && j.Offers[n-1].ID > j.toldOffer { // the application listens now
		j.silences, j.offerAfter = 0, c.now
	}
	o := j.offer()
	if o == nil || o.State != offerOpen || o.ID <= k.Offer.After || j.State != row.Running {
		return false
	}
	j.toldOffer = o.ID
	a := c.offerShown(*o)
	a.Ready, a.Job = true, j.SlurmID
	c.emit(Reply{ID: k.ID, Offer: &a})
	return true
}

// demanded returns what a job must give back, or nil if that is nothing.
func (c *Core) demanded(j *job) *api.Demand {
	o := j.offer()
	if o == nil || !o.demands() {
		return nil
	}
	leaving := common(o.wanted(), j.nodes())
	if len(leaving) == 0 {
		return nil
	}
	return &api.Demand{Offer: o.ID, Nodes: len(leaving), Leaving: leaving, Deadline: c.wall(time.Unix(o.Deadline, 0)), Why: o.Why}
}

// offerShown converts an offer to its API form.
func (c *Core) offerShown(o offer) api.Offer {
	a := api.Offer{ID: o.ID, Kind: o.Kind, Mandatory: o.Mandatory, Nodes: o.Nodes, Has: o.Had, NodeList: slurmctl.CompressNodes(o.List[:o.Nodes]),
		Why: o.Why, Made: c.wall(time.Unix(o.Made, 0)), Deadline: c.wall(time.Unix(o.Deadline, 0)), State: o.State, Accepted: o.Accepted, Enforced: o.Enforced, Note: o.Note}
	if !o.grows() {
		a.Further = o.List[o.Nodes:]
		if !o.Mandatory && o.Nodes > 1 {
			a.Order = o.List[:o.Nodes]
		}
	}
	if o.Answered != 0 {
		a.Answered = c.wall(time.Unix(o.Answered, 0))
	}
	if o.Closed != 0 {
		a.Closed = c.wall(time.Unix(o.Closed, 0))
	}
	return a
}

// takeAnswer processes an application's answer to an offer. It reports false while an accepted change is in
// progress.
func (c *Core) takeAnswer(k *call) bool {
	reply := func(a api.Answer, err error) bool {
		a.Ready = err == nil
		c.emit(Reply{ID: k.ID, Answer: &a, Err: err})
		return true
	}
	j, err := c.callee(k.Job)
	if err != nil {
		return reply(api.Answer{}, err)
	}
	k.job = j
	conflict := func(format string, args ...any) bool {
		return reply(api.Answer{}, api.Errorf(api.ErrConflict, "offer %d: %s", k.Answer.Offer, fmt.Sprintf(format, args...)))
	}
	i := slices.IndexFunc(j.Offers, func(o row.Offer) bool { return o.ID == k.Answer.Offer })
	if i < 0 {
		return conflict("%s has no such offer any more", jobNumber(j.SlurmID))
	}
	o := offer(j.Offers[i])
	a := api.Answer{Job: j.SlurmID, Offer: o.ID, Kind: o.Kind, Accepted: o.Accepted, Note: o.Note}
	switch {
	case o.State == offerDone && !o.Enforced:
		has := c.allocation(j)
		a.Has = &has
		return reply(a, nil)
	case o.State == offerDeclined:
		return reply(a, nil)
	case o.State == offerFailed:
		return conflict("the job keeps what it has: %s", o.Note)
	case o.Enforced:
		return conflict("%s were taken from the job: %s", slurmctl.CompressNodes(o.wantedAtEnd()), o.Note)
	case o.over():
		return conflict("it is over: %s", o.Note)
	case o.State == offerAccepted:
		return false
	case j.State != row.Running:
		return conflict("the step has ended")
	}
	if k.Answer.Accept == 0 && o.Mandatory {
		if o.Note == "" {
			o.Note = "declined"
			c.event(j, "offer declined", map[string]any{"kind": o.Kind, "nodes": o.Nodes, "list": slurmctl.CompressNodes(o.wanted()), "why": "it is mandatory"})
			c.changeOffer(j, o)
		}
		a.Note = fmt.Sprintf("it is mandatory: %s are taken from the job at %s", slurmctl.CompressNodes(o.wanted()), c.clockText(time.Unix(o.Deadline, 0)))
		return reply(a, nil)
	}
	if k.Answer.Accept == 0 {
		c.closeOffer(j, offerDeclined, "declined")
		return reply(a, nil)
	}
	if err := c.acceptable(j, &o, k.Answer.Accept); err != nil {
		return reply(a, err)
	}
	o.State, o.Accepted, o.Answered, o.Note = offerAccepted, k.Answer.Accept, c.now.Unix(), ""
	c.event(j, "offer accepted", map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": slurmctl.CompressNodes(o.wanted())})
	c.changeOffer(j, o)
	return false
}

// wantedAtEnd does what wanted does, for an offer that is over.
func (o *offer) wantedAtEnd() []string { return o.List[:max(o.Accepted, 0)] }

// acceptable checks how many nodes an application accepts.
func (c *Core) acceptable(j *job, o *offer, nodes int) error {
	size := len(j.nodes()) + nodes
	if !o.grows() {
		size = len(j.nodes()) - nodes
	}
	switch {
	case nodes < 0:
		return api.Errorf(api.ErrInvalid, "to accept %d nodes: want at least 1, or 0 to decline", nodes)
	case o.grows() && nodes > o.Nodes:
		return api.Errorf(api.ErrInvalid, "cannot accept %d nodes: the offer has %d", nodes, o.Nodes)
	case !o.grows() && nodes > len(o.List):
		return api.Errorf(api.ErrInvalid, "cannot give %d nodes back: the job can give %d and keep its smallest number", nodes, len(o.List))
	case o.Mandatory && nodes < o.Nodes:
		return api.Errorf(api.ErrInvalid, "cannot give only %d nodes back: the demand is for %d", nodes, o.Nodes)
	case !o.grows() && !j.canReturn(o.List[:nodes]):
		return api.Errorf(api.ErrInvalid, "to give %d nodes back: jobs cannot be resized here, and companions go as a whole", nodes)
	case !j.Malleable.Sizes.Has(size):
		return api.Errorf(api.ErrInvalid, "with %d nodes the job would have %d, which is none of its sizes (%v)", nodes, size, j.Malleable.Sizes)
	}
	return nil
}
