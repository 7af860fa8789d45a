package api

import (
	"context"
	"net/http"
	"time"
)

// DrainRequest switches the sidecar off: it adopts and holds nothing new. With Release, it also gives up what there is.
type DrainRequest struct {
	Release bool   `json:"release,omitempty"`
	Queued  string `json:"queued,omitempty"`  // what becomes of queued jobs: start (default), hold or cancel
	As      string `json:"as,omitempty"`      // started with the nodes of their first step (first, default) or their largest (peak)
	Running string `json:"running,omitempty"` // whether running jobs keep all nodes (keep, default) or give back those beyond their step (shrink)
}

// Drain says how the sidecar is switched off.
type Drain struct {
	DrainRequest

	By    string    `json:"by,omitempty"` // "": the configuration
	At    time.Time `json:"at,omitzero"`
	Words string    `json:"words"` // for people
	Left  Left      `json:"left"`  // what is not released yet
}

// Left counts what the sidecar still has in Slurm.
type Left struct {
	Holds   int `json:"holds"`
	Queued  int `json:"queued"`  // jobs that are parked, or were
	Running int `json:"running"` // jobs that are driven
	Calls   int `json:"calls"`   // scripts that wait
}

// None reports whether nothing is left.
func (l Left) None() bool { return l == Left{} }

// Drain switches the sidecar off. For operators.
func (c *Client) Drain(ctx context.Context, r DrainRequest) (Drain, error) {
	return callOnce[Drain](ctx, c, http.MethodPost, "/v1/drain", r)
}

// Resume switches the sidecar on again. For operators.
func (c *Client) Resume(ctx context.Context) (Status, error) {
	return callOnce[Status](ctx, c, http.MethodPost, "/v1/resume", struct{}{})
}

func (d *desk) drain(ctx context.Context, r request) (any, error) {
	var req DrainRequest
	if err := d.switches(r, &req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	return d.backend.Drain(ctx, &req, userName(r.caller.uid))
}

func (d *desk) resume(ctx context.Context, r request) (any, error) {
	if err := d.switches(r, &struct{}{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	if _, err := d.backend.Drain(ctx, nil, userName(r.caller.uid)); err != nil {
		return nil, err
	}
	return d.backend.Status(ctx)
}

// switches reads a request of who may switch the sidecar off and on.
func (d *desk) switches(r request, req any) error {
	if !r.caller.known {
		return Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	if !d.rights.trusted(r.caller) {
		return Errorf(ErrForbidden, "the sidecar is drained and resumed by operators (see operators in the configuration)")
	}
	return readOne(r, req)
}
