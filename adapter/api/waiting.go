package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Some requests about a job are answered only after an event in Slurm. No connection lasts that
// long: the server cuts the wait short, and the client asks again.

// waiting answers a request Q about the job in the path by ask, within s.wait(), or less if the
// server stops. The answer is then cut(job), which tells the client to ask again.
func waiting[Q, A any](s *Server, server, ctx context.Context, r request, cut func(id uint32) A, ask func(ctx context.Context, id uint32, q Q) (A, error)) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	if err := s.mayAct(ctx, r.caller, id); err != nil {
		return nil, err
	}
	var q Q
	if err := readOne(r, &q); err != nil {
		return nil, err
	}
	leave, err := s.enterWait(r, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, s.wait())
	defer cancel()
	defer context.AfterFunc(server, cancel)()
	a, err := ask(ctx, id, q)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return cut(id), nil
	}
	with := s.discretion(context.WithoutCancel(ctx), r.caller)
	discreet(&a, with)
	return a, discreetError(err, with)
}

// untilReady asks again and again until the answer is ready.
func untilReady[A any](ctx context.Context, c *Client, path string, q any, ready func(A) bool) (A, error) {
	for pause := newPause(); ; {
		var a A
		asked := time.Now()
		if err := c.call(ctx, http.MethodPost, path, q, &a); err != nil || ready(a) {
			return a, err
		}
		if time.Since(asked) >= time.Second {
			pause = newPause()
		} else if err := pause.sleep(ctx); err != nil { // cut short at once: the sidecar is stopping
			return a, err
		}
	}
}
