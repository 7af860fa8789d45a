package api

import (
	"context"
	"errors"
	"time"
)

// Some requests about a job are answered only after an event in Slurm. No connection lasts that
// long: the server cuts the wait short, and the client asks again.

// waiting answers a request Q about the job in the path by ask, within d.wait, or less if the
// server stops. The answer is then cut(job), which tells the client to ask again.
func waiting[Q, A any](d *desk, ctx context.Context, r request, cut func(id uint32) A, ask func(ctx context.Context, id uint32, q Q) (A, error)) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	if err := d.rights.mayAct(ctx, r.caller, id); err != nil {
		return nil, err
	}
	var q Q
	if err := readOne(r, &q); err != nil {
		return nil, err
	}
	r.body = nil // which is not kept while this waits
	leave, err := d.shares.enterWait(r, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, handsKey{}, handsOf(r)), d.wait)
	defer cancel()
	defer context.AfterFunc(d.ending, cancel)()
	a, err := ask(ctx, id, q)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return cut(id), nil
	}
	if first, ok := errors.AsType[*SubmitFirst](err); ok {
		return asked{Submit: &first.Submission}, nil
	}
	with := d.rights.discretion(context.WithoutCancel(ctx), r.caller)
	discreet(&a, with)
	return a, discreetError(err, with)
}

func (d *desk) next(ctx context.Context, r request) (any, error) {
	return waiting(d, ctx, r, func(id uint32) Allocation { return Allocation{Job: id} }, func(ctx context.Context, id uint32, req NextRequest) (Allocation, error) {
		if req.From < 1 {
			return Allocation{}, Errorf(ErrInvalid, "from=%d: steps are numbered from 1", req.From)
		}
		return d.backend.Next(ctx, id, req)
	})
}

func (d *desk) change(ctx context.Context, r request) (any, error) {
	return waiting(d, ctx, r, func(id uint32) Change { return Change{Job: id} }, d.backend.Change)
}

func (d *desk) offer(ctx context.Context, r request) (any, error) {
	return waiting(d, ctx, r, func(uint32) Offer { return Offer{} }, func(ctx context.Context, id uint32, q OfferQuery) (Offer, error) {
		o, err := d.backend.Offer(ctx, id, q)
		o.Seconds = int(max(time.Until(o.Deadline)/time.Second, 0))
		return o, err
	})
}

func (d *desk) answerOffer(ctx context.Context, r request) (any, error) {
	return waiting(d, ctx, r, func(uint32) Answer { return Answer{} }, func(ctx context.Context, id uint32, req AnswerRequest) (Answer, error) {
		if req.Accept < 0 {
			return Answer{}, Errorf(ErrInvalid, "to accept %d nodes: want at least 1, or 0 to decline", req.Accept)
		}
		return d.backend.Answer(ctx, id, req)
	})
}

func (d *desk) progress(ctx context.Context, r request) (any, error) {
	return waiting(d, ctx, r, func(id uint32) Progress { return Progress{Job: id} }, d.backend.Progress)
}
