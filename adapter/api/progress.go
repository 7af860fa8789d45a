package api

import "time"

// ProgressReport is which part of its work an application has done, 0 to 1. It never falls.
type ProgressReport struct {
	Fraction float64 `json:"fraction"`
}

// Progress holds an application's reports and the measurements from them.
type Progress struct {
	Ready    bool       `json:"ready,omitempty"`    // false: the sidecar was about to stop, ask again
	Job      uint32     `json:"job,omitempty"`      // base job
	Fraction float64    `json:"fraction"`           // of its work, at the last report
	At       time.Time  `json:"at"`                 // of the last report, by the time for which the job has run
	Speedup  string     `json:"speedup,omitempty"`  // as measured, in the grammar of --speedup; empty: on fewer than two sizes
	Measured []Measured `json:"measured,omitempty"` // in ascending order of their nodes
}

// Measured is how far an application came on a number of nodes.
type Measured struct {
	Nodes    int     `json:"nodes"`
	Seconds  int64   `json:"seconds"`
	Fraction float64 `json:"fraction"`
}
