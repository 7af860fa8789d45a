package lend

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestAnswers checks how many nodes an application may accept of an offer, or of a demand.
func TestAnswers(t *testing.T) {
	grow := refit.Offer{Kind: "grow", Nodes: 3, List: statetest.Nodes("n[5-7]")}
	demand := refit.Offer{Kind: "shrink", Mandatory: true, Nodes: 1, List: statetest.Nodes("n[3-4]")}
	ask := refit.Offer{Kind: "shrink", Nodes: 1, List: statetest.Nodes("n[3-4]")}
	for name, c := range map[string]struct {
		offer  refit.Offer
		change func(b *statetest.Bench, j *state.Job)
		accept int
		want   string // the reply; "": the nodes come or go, and the call waits
	}{
		"all that it is offered":         {grow, nil, 3, ""},
		"fewer":                          {grow, nil, 1, ""},
		"more":                           {grow, nil, 4, "reply: cannot accept 4 nodes: the offer has 3"},
		"fewer than none":                {grow, nil, math.MinInt, fmt.Sprintf("reply: to accept %d nodes: want at least 1, or 0 to decline", math.MinInt)},
		"none: it declines":              {grow, nil, 0, "reply to 1: declined"},
		"a size that it does not have":   {grow, func(_ *statetest.Bench, j *state.Job) { j.Malleable.Sizes = malleable.Pow2 }, 1, "reply: with 1 nodes the job would have 5, which is none of its sizes (pow2)"},
		"after its step has ended":       {grow, func(b *statetest.Bench, j *state.Job) { b.Waits(j) }, 3, "reply: offer 1800000000: the step has ended"},
		"what is demanded":               {demand, nil, 1, ""},
		"more than is demanded":          {demand, nil, 2, ""},
		"more than it is lent":           {demand, nil, 3, "reply: cannot give 3 nodes back: the job can give 2 and keep its smallest number"},
		"it declines what is mandatory":  {demand, nil, 0, "reply to 1: declined; it is mandatory: n3 are taken from the job at "},
		"fewer than is demanded":         {refit.Offer{Kind: "shrink", Mandatory: true, Nodes: 2, List: demand.List}, nil, 1, "reply: cannot give only 1 nodes back: the demand is for 2"},
		"a part of a companion":          {ask, companion, 1, "reply: to give 1 nodes back: jobs cannot be resized here, and companions go as a whole"},
		"the whole companion":            {ask, companion, 2, ""},
		"nodes that it has lost, too":    {refit.Offer{Kind: "shrink", Mandatory: true, Nodes: 3, List: statetest.Nodes("n[2-4]")}, func(b *statetest.Bench, j *state.Job) { b.Has(j, "n1") }, 3, ""},
		"to an offer that was withdrawn": {grow, func(b *statetest.Bench, j *state.Job) { refit.CloseOffer(b.Core, j, refit.OfferWithdrawn, "why") }, 3, "reply: offer 1800000000: it is over: why"},
		"to an offer that nobody answered": {grow, func(b *statetest.Bench, j *state.Job) {
			refit.CloseOffer(b.Core, j, refit.OfferUnanswered, "no answer")
		}, 3, "reply: offer 1800000000: it is over: no answer"},
		"once its user is denied":         {grow, func(b *statetest.Bench, j *state.Job) { b.Config.Deny.Users = []string{j.User} }, 3, "reply: offer 1800000000: it is over: this site denies evolving jobs to user user "},
		"to an offer that is forgotten":   {grow, func(_ *statetest.Bench, j *state.Job) { j.Offers = nil }, 3, "reply: offer 1800000000: job 1 has no such offer any more"},
		"again, once the nodes have come": {grow, func(b *statetest.Bench, j *state.Job) { refit.CloseOffer(b.Core, j, refit.OfferDone, "") }, 3, "reply to 1: accepted 0 to grow; it has 4"},
		"again, after it declined":        {grow, func(b *statetest.Bench, j *state.Job) { refit.CloseOffer(b.Core, j, refit.OfferDeclined, "declined") }, 3, "reply to 1: declined; declined"},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := lends(t)
			j.Record.NodeList = statetest.Nodes("n[1-4]")
			b.Has(j, "n[1-4]")
			put(b.Core, j, c.offer)
			id := j.Offers[0].ID
			if c.change != nil {
				c.change(b, j)
			}
			b.Replies()
			k := &state.OpenCall{}
			k.ID, k.Job, k.Answer = 1, 1, &api.AnswerRequest{Offer: id, Accept: c.accept}
			answered := TakeAnswer(b.Core, k)
			got := strings.Join(b.Replies(), "; ")
			if got != c.want && (!strings.HasSuffix(c.want, " ") || !strings.HasPrefix(got, c.want)) || answered != (c.want != "") {
				t.Errorf("%q, want %q", got, c.want)
			}
			if o := refit.OfferAt(j); c.want == "" && (o == nil || o.State != refit.OfferAccepted || len(o.Wanted()) != c.accept) {
				t.Errorf("the offer is %+v", o)
			}
		})
	}
}

// TestOffersAreBounded checks that a user's job makes the database keep no more than a few offers, and that their
// numbers rise whatever the clock does.
func TestOffersAreBounded(t *testing.T) {
	b, j := lends(t)
	last := int64(0)
	for range 3 * row.MostOffers {
		put(b.Core, j, refit.Offer{Kind: "grow", Nodes: 1, List: []string{"n3"}})
		if id := j.Offers[len(j.Offers)-1].ID; id <= last {
			t.Errorf("offer %d follows offer %d", id, last)
		}
		last = j.Offers[len(j.Offers)-1].ID
		refit.CloseOffer(b.Core, j, refit.OfferDeclined, "declined")
		b.Skew -= time.Hour
	}
	if len(j.Offers) != row.MostOffers {
		t.Errorf("%d offers are kept, want %d", len(j.Offers), row.MostOffers)
	}
}

// TestGivesBack checks what a job gives back of its own accord of the lent nodes n3 and n4.
func TestGivesBack(t *testing.T) {
	for name, c := range map[string]struct {
		ask  api.ChangeRequest
		want string // what it gives back, or why not
	}{
		"one node":          {api.ChangeRequest{Shrink: &api.Shrink{Nodes: 1}}, "n4"},
		"both":              {api.ChangeRequest{Shrink: &api.Shrink{Nodes: 2}}, "n[3-4]"},
		"a named one":       {api.ChangeRequest{Shrink: &api.Shrink{List: []string{"n3"}}}, "n3"},
		"one of its own":    {api.ChangeRequest{Shrink: &api.Shrink{List: []string{"n2"}}}, "job 1 is not lent n2: it gives back first what it is lent, n[3-4]"},
		"the script's node": {api.ChangeRequest{Shrink: &api.Shrink{List: []string{"n1"}}}, "n1 runs the batch script and cannot be given back before the end"},
		"a node twice":      {api.ChangeRequest{Shrink: &api.Shrink{List: []string{"n3", "n3"}}}, "a node is listed twice"},
		"fewer than none":   {api.ChangeRequest{Shrink: &api.Shrink{Nodes: -1}}, "to shrink by -1 nodes: want at least 1"},
		"nothing":           {api.ChangeRequest{Shrink: &api.Shrink{}}, "set how many nodes to give back, or which"},
		"for a time":        {api.ChangeRequest{Shrink: &api.Shrink{Nodes: 1, For: 60}}, "--for: the job gives back what it is lent, and may be offered it again any time"},
		"in another step":   {api.ChangeRequest{From: 2, Shrink: &api.Shrink{Nodes: 1}}, "job 1 is in step 1, not 2 (evaluate what evosctl env prints, and EVO_STEP is right)"},
		"more than lent":    {api.ChangeRequest{Shrink: &api.Shrink{Nodes: 3}}, "no"},
		"to grow":           {api.ChangeRequest{Grow: &api.Grow{Nodes: 1}}, "no"},
		"to grow as well":   {api.ChangeRequest{Grow: &api.Grow{Nodes: 1}, Shrink: &api.Shrink{Nodes: 1}}, "no"},
	} {
		b, j := lends(t)
		j.Record.NodeList = statetest.Nodes("n[1-4]")
		b.Has(j, "n[1-4]")
		got := "no"
		if GivesBack(b.Core, &c.ask, j) {
			list, err := toGiveBack(b.Core, j, &c.ask)
			if got = slurmctl.CompressNodes(list); err != nil {
				got = err.Error()
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
