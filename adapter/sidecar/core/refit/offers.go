package refit

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
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
	OfferOpen       = "open"
	OfferAccepted   = "accepted"   // accepted and in progress
	OfferDone       = "done"       // the nodes have come or gone
	OfferDeclined   = "declined"   //
	OfferWithdrawn  = "withdrawn"  //
	OfferUnanswered = "unanswered" //
	OfferFailed     = "failed"     // accepted, but it failed
)

// Offer is a row.Offer with methods.
type Offer row.Offer

// OfferAt returns a copy of the open or accepted offer, or nil if there is none. The caller must not change its
// lists.
func OfferAt(j *state.Job) *Offer {
	if n := len(j.Offers); n > 0 {
		if o := Offer(j.Offers[n-1]); !o.Over() {
			return &o
		}
	}
	return nil
}

func (o *Offer) Over() bool { return o.State != OfferOpen && o.State != OfferAccepted }

func (o *Offer) Grows() bool { return o.Kind == malleable.Grow.String() }

// Demands reports whether the offer will certainly bring nodes back.
func (o *Offer) Demands() bool { return !o.Grows() && (o.Mandatory || o.State == OfferAccepted) }

// Wanted returns the nodes that will come or go.
func (o *Offer) Wanted() []string {
	if o.State == OfferAccepted {
		return o.List[:o.Accepted]
	}
	return o.List[:o.Nodes]
}

// ChangeOffer replaces an offer of a job.
func ChangeOffer(c *state.Core, j *state.Job, o Offer) {
	j.UpdateOffer(row.Offer(o))
	c.Save(j)
	Notify(c, j)
}

// CloseOffer ends the job's offer.
func CloseOffer(c *state.Core, j *state.Job, st, note string) {
	o := *OfferAt(j)
	list := slurmctl.CompressNodes(o.Wanted())
	o.State, o.Closed = st, c.Now.Unix()
	if note != "" {
		o.Note = note
	}
	detail := map[string]any{"kind": o.Kind, "nodes": o.Accepted, "list": list}
	kind := map[string]string{OfferDone: "given back", OfferDeclined: "offer declined", OfferFailed: "offer failed"}[st]
	switch {
	case kind == "":
		kind = "offer withdrawn"
		detail["nodes"], detail["why"] = o.Nodes, note
	case st == OfferDone && o.Grows():
		kind = "lent"
	case st != OfferDone:
		detail["nodes"], detail["why"] = o.Nodes, o.Note
	}
	again, silences := settled, j.Silences
	if o.Why == OwnAccord {
		again = declinedFor
	}
	switch st {
	case OfferDone:
		if !o.Enforced {
			silences = 0
		}
	case OfferDeclined, OfferFailed, OfferUnanswered:
		again = min(declinedFor<<min(silences, 8), mostDeclinedFor)
		silences++
	}
	j.OfferOver(silences, c.Now.Add(again))
	if j.State == row.Running {
		j.GoesOn()
	}
	c.Event(j, kind, detail)
	ChangeOffer(c, j, o)
}

const (
	// settled is how long the sidecar leaves a job alone after a change; declinedFor is how long after it declined
	// or did not answer, and mostDeclinedFor is the longest such time after repeated ones.
	settled         = 5 * time.Second
	declinedFor     = time.Minute
	mostDeclinedFor = 10 * time.Minute
)

// Bound returns the Unix second by which a job has promised to give a lent node back, or 0 if it has not.
func Bound(j *state.Job, name string) int64 {
	for _, o := range slices.Backward(j.Offers) {
		if one := Offer(o); one.Grows() && one.State == OfferDone && slices.Contains(one.WantedAtEnd(), name) {
			return one.Back
		}
	}
	return 0
}

// Binds reports whether a job still has nodes that it promised to give back when it accepted the offer.
func (o *Offer) Binds(j *state.Job) bool {
	return o.Back > 0 && o.State == OfferDone && len(msg.Common(o.WantedAtEnd(), Lent(j))) > 0
}

// WantedAtEnd does what wanted does, for an offer that is over.
func (o *Offer) WantedAtEnd() []string { return o.List[:max(o.Accepted, 0)] }
