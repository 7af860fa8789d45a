package api

import (
	"context"
	"time"
)

// ChangeRequest changes what is still to come of a job: by one of Update, Grow and Shrink.
// A caller that repeats it with the same ID (the answer was lost, or the wait was cut into
// pieces) does not change the job twice.
type ChangeRequest struct {
	ID     string `json:"id"`                // of the request: up to 16 hexadecimal digits
	From   int    `json:"from,omitempty"`    // the step that the caller is in, 1-based; 0: whichever the job is in
	DryRun bool   `json:"dry_run,omitempty"` // only tell

	Update *Update `json:"update,omitempty"`
	Grow   *Grow   `json:"grow,omitempty"`
	Shrink *Shrink `json:"shrink,omitempty"`
}

// Update replaces the steps after the running one, or says for how long that one goes on.
type Update struct {
	Profile string `json:"profile,omitempty"` // in the grammar of --profile; "": as it was
	Current int64  `json:"current,omitempty"` // seconds from now on; 0: as it was
	Wait    int64  `json:"wait,omitempty"`    // seconds by which the next step may begin later than asked for
}

// Grow ends the present step and begins one with more nodes.
type Grow struct {
	Nodes int   `json:"nodes"`          // that many more
	Min   int   `json:"min,omitempty"`  // at least that many more; 0: all
	For   int64 `json:"for,omitempty"`  // seconds, after which it has as many as before; 0: the rest of the present step
	Wait  int64 `json:"wait,omitempty"` // seconds until then at most
}

// Shrink ends the present step and begins one with fewer nodes.
type Shrink struct {
	Nodes int      `json:"nodes,omitempty"` // that many fewer
	List  []string `json:"list,omitempty"`  // or these
	For   int64    `json:"for,omitempty"`   // seconds; 0: the rest of the present step
}

// Change is the answer to a ChangeRequest. Nothing has changed unless Accepted is set and
// DryRun is not.
type Change struct {
	Ready    bool        `json:"ready"` // false: the wait was cut short, ask again
	Accepted bool        `json:"accepted"`
	DryRun   bool        `json:"dry_run,omitempty"`
	Why      string      `json:"why,omitempty"`        // refused: what stands in the way
	Earliest time.Time   `json:"earliest,omitzero"`    // refused: when the next step could begin
	Job      uint32      `json:"job"`                  // base job
	Step     int         `json:"step"`                 // the present one; 0 before the start
	Profile  string      `json:"profile"`              // as it is, or would be, with all steps
	Bounds   string      `json:"bounds,omitempty"`     // of a malleable job
	Leaving  []string    `json:"leaving,omitempty"`    // nodes that go, or would go, by a shrink
	Plan     []Span      `json:"plan"`                 // from the present step on; of what was refused, as it could be had
	Note     string      `json:"note,omitempty"`       //
	Has      *Allocation `json:"allocation,omitempty"` // what it has now, after a growth or shrink
}

// Changer is a Backend that changes what is still to come of jobs.
type Changer interface {
	// Change answers at once what is refused, and what is accepted once Slurm has it and,
	// of a growth or shrink, the nodes are there. When ctx is done first it answers with
	// Ready false and no error.
	Change(ctx context.Context, id uint32, req ChangeRequest) (Change, error)
}

func (s *Server) change(server, ctx context.Context, r request) (any, error) {
	b, ok := s.Backend.(Changer)
	if !ok {
		return nil, Errorf(ErrNotFound, "this sidecar changes no jobs")
	}
	return waiting(s, server, ctx, r, func(id uint32) Change { return Change{Job: id} }, b.Change)
}

// Change changes what is still to come of a job, and waits until it is refused, or done.
// Called again with the same ID it goes on waiting.
func (c *Client) Change(ctx context.Context, id uint32, req ChangeRequest) (Change, error) {
	return untilReady(ctx, c, jobPath(id)+"/change", req, func(a Change) bool { return a.Ready })
}
