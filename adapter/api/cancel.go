package api

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
