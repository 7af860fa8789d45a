package api

import (
	"context"
	"net/http"
)

// CancelHolds cancels the nodes held for the coming steps of a running job. The sidecar replans
// these steps when the current step ends. For operators.
type CancelHolds struct {
	By string `json:"by,omitempty"` // the operator, for the event log and the job; set by the server
}

// Cancelled describes the holds that were cancelled.
type Cancelled struct {
	Job   uint32 `json:"job"`   // base job
	Step  int    `json:"step"`  // the current step, which continues
	Holds []Span `json:"holds"` // of its coming steps
}

func (s *Server) cancelHolds(ctx context.Context, r request) (any, error) {
	id, err := r.id()
	if err != nil {
		return nil, err
	}
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	if !s.trusted(r.caller) {
		return nil, Errorf(ErrForbidden, "holds are cancelled by operators (see operators in the configuration)")
	}
	var req CancelHolds
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	req.By = userName(r.caller.uid)
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	return s.Backend.CancelHolds(ctx, id, req)
}

// CancelHolds cancels what is held for the coming steps of a running job. For operators.
func (c *Client) CancelHolds(ctx context.Context, id uint32) (Cancelled, error) {
	var a Cancelled
	return a, c.call(ctx, http.MethodPost, jobPath(id)+"/cancel-holds", CancelHolds{}, &a)
}

// CancelHolds cancels what is held for the coming steps of a running job. For operators.
func (v Visitor) CancelHolds(ctx context.Context, id uint32) (Cancelled, error) {
	return visit[Cancelled](ctx, v, v.server.cancelHolds, jobPath(id)+"/cancel-holds", CancelHolds{}, "id", idText(id))
}
