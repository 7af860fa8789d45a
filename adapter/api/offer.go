package api

import "time"

// OfferQuery waits for an offer to a malleable job.
type OfferQuery struct {
	After int64 `json:"after,omitempty"` // the id of one that is known: later ones count
}

// Offer is a number of nodes that a malleable job may have for a while, or that it should give
// back. If mandatory, giving back is a demand.
type Offer struct {
	Ready     bool      `json:"ready,omitempty"` // false: the wait was cut short, ask again
	Job       uint32    `json:"job,omitempty"`   // base job
	ID        int64     `json:"offer"`
	Kind      string    `json:"kind"` // grow or shrink
	Mandatory bool      `json:"mandatory"`
	Nodes     int       `json:"nodes"`             // offered at most; wanted at least
	NodeList  string    `json:"node_list"`         // these
	Order     []string  `json:"order,omitempty"`   // order in which to give them back if not all go
	Further   []string  `json:"further,omitempty"` // nodes that would go after these, if more are given back
	Has       int       `json:"has"`               // the job's nodes when it was made
	Why       string    `json:"why,omitempty"`
	Made      time.Time `json:"made,omitzero"`
	Deadline  time.Time `json:"deadline"`       // until which it may be answered
	Seconds   int       `json:"seconds"`        // until then
	Until     time.Time `json:"until,omitzero"` // by when offered nodes must be left by the present plan; none: no other job is planned on them

	State    string    `json:"state,omitempty"` // open, accepted (being carried out), done, declined, withdrawn, unanswered or failed
	Accepted int       `json:"accepted,omitempty"`
	Enforced bool      `json:"enforced,omitempty"` // the nodes were taken at the deadline
	Answered time.Time `json:"answered,omitzero"`  // when it was accepted
	Back     time.Time `json:"back,omitzero"`      // by when the job promised to give the nodes back
	Closed   time.Time `json:"closed,omitzero"`
	Note     string    `json:"note,omitempty"`
}

// AnswerRequest answers an offer. A caller may repeat it (if the answer was lost, or the wait was
// cut short) without changing the job twice.
type AnswerRequest struct {
	Offer  int64     `json:"offer"`
	Accept int       `json:"accept"`         // number of nodes; 0 to decline
	Until  time.Time `json:"until,omitzero"` // promises to give them back by then
}

// Answer is the result of an answer.
type Answer struct {
	Ready    bool        `json:"ready"` // false: the wait was cut short, ask again
	Job      uint32      `json:"job"`
	Offer    int64       `json:"offer"`
	Kind     string      `json:"kind"`
	Accepted int         `json:"accepted"` // nodes that have come, or gone
	Note     string      `json:"note,omitempty"`
	Has      *Allocation `json:"allocation,omitempty"` // what the job has now, if something was accepted
}
