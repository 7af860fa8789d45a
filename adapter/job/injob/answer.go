package injob

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// answerOffers answers what a malleable job is offered or asked for, until the follower ends. If
// the job is not malleable, it returns at once.
func (f *follower) answerOffers() {
	for known := int64(0); ; {
		o, err := f.sidecar.Offer(f.ctx, f.Allocation.Job, api.OfferQuery{After: known})
		switch {
		case f.ctx.Err() != nil, errors.Is(err, api.ErrConflict), errors.Is(err, api.ErrNotFound):
			return // no offers: the job has ended, or the sidecar has none
		case err == nil:
			known = o.ID
			f.answer(o)
			continue
		}
		select {
		case <-time.After(nextPause):
		case <-f.ctx.Done():
			return
		}
	}
}

// answer answers an offer: it drains nodes that leave first, and uses nodes that arrive at once.
func (f *follower) answer(o api.Offer) {
	grows := o.Kind == "grow"
	if grows && f.accept != acceptAll {
		_, _ = f.sidecar.Answer(f.ctx, f.Allocation.Job, api.AnswerRequest{Offer: o.ID}) // otherwise the offer is withdrawn
		return
	}
	leaving := GivenBack(o, o.Nodes)
	if !grows && len(leaving) == 0 {
		f.say("offer %d names no nodes that it could be about", o.ID)
		return
	}
	limit, deadline := f.drainLimit(), time.Time{}
	if o.Mandatory {
		deadline = time.Now().Add(time.Duration(o.Seconds) * time.Second) // by this machine's clock
	}
	unlock := f.alone("offer")
	defer unlock()
	var before api.Allocation
	met := make(chan *Meeting, 1)
	f.post(func() {
		before = f.has
		if f.finishing || f.answered >= o.ID {
			close(met)
			return
		}
		if o.Mandatory {
			limit = f.demandLimit(leaving, deadline)
		}
		f.drainEverywhere(leaving, limit, meetRequest{Leaving: leaving, By: secondsUntil(deadline)}, func(m *Meeting) { met <- m })
	})
	var others *Meeting
	select {
	case others = <-met:
	case <-f.ctx.Done():
	}
	if others == nil {
		return
	}
	defer others.End(nil)
	hooks := f.hooksFor(before, o.ID)
	given := before
	given.Coming = &api.Coming{Nodes: before.Nodes - len(leaving)}
	f.hook(hooks.By(deadline).Leaving(f.ctx, given, leaving))
	a, err := f.sidecar.Answer(f.ctx, f.Allocation.Job, api.AnswerRequest{Offer: o.ID, Accept: o.Nodes})
	if err == nil && a.Has != nil {
		others.end(a.Has, o.ID)
	}
	unlock()
	f.post(func() {
		f.stay(leaving)
		switch {
		case err == nil && a.Has != nil:
			if grows {
				f.lend(o)
			}
			f.learn(*a.Has)
			return
		case err != nil && !grows && f.ctx.Err() == nil:
			f.say("%v", err)
		}
		f.poke() // what was drained starts again if the job keeps its node
	})
	if err == nil && a.Has != nil {
		f.hook(hooks.Arrived(f.ctx, *a.Has, NodesOf(before)))
	}
}

// lend notes until when nodes are lent.
func (f *follower) lend(o api.Offer) {
	nodes, _ := slurmctl.ExpandNodes(o.NodeList)
	for _, node := range nodes {
		f.lent[node] = o.Until
	}
}
