package api

import "time"

// ChangeRequest changes the coming steps of a job, by one of Update, Grow, and Shrink. A caller may
// repeat it with the same ID (if the answer was lost, or the wait was cut short) without changing
// the job twice.
type ChangeRequest struct {
	ID     string `json:"id"`                // of the request: up to 16 hexadecimal digits
	From   int    `json:"from,omitempty"`    // the step that the caller is in, 1-based; 0: whichever the job is in
	DryRun bool   `json:"dry_run,omitempty"` // only report the outcome

	Update *Update `json:"update,omitempty"`
	Grow   *Grow   `json:"grow,omitempty"`
	Shrink *Shrink `json:"shrink,omitempty"`
}

// Update replaces the steps after the running one, or sets how long the running one lasts.
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

// Change is the answer to a ChangeRequest. It changed nothing unless Accepted is set and DryRun is
// not.
type Change struct {
	Ready    bool        `json:"ready"` // false: the wait was cut short, ask again
	Accepted bool        `json:"accepted"`
	DryRun   bool        `json:"dry_run,omitempty"`
	Why      string      `json:"why,omitempty"`        // refused: what stands in the way
	Earliest time.Time   `json:"earliest,omitzero"`    // refused: when the next step could begin
	Job      uint32      `json:"job"`                  // base job
	Step     int         `json:"step"`                 // the present one; 0 before the start
	Profile  string      `json:"profile"`              // current or future profile, with all steps
	Bounds   string      `json:"bounds,omitempty"`     // of a malleable job
	Leaving  []string    `json:"leaving,omitempty"`    // nodes that go, or would go, by a shrink
	Plan     []Span      `json:"plan"`                 // from the current step on; for a refused change, a plan that would be possible
	Note     string      `json:"note,omitempty"`       //
	Has      *Allocation `json:"allocation,omitempty"` // what the job has now, after a growth or shrink
}
