package planner

import "math"

// Step is one step of an evolution profile: Nodes nodes for Duration seconds.
type Step struct {
	Duration int64 `json:"duration"` // seconds, ≥ 1
	Nodes    int   `json:"nodes"`    // ≥ 1 in a requested profile
}

// Profile is an evolution profile (paper, section 3.1): a sequence of steps.
type Profile []Step

// ExpandLimit bounds how long a step's nodes may be held, as a multiple of its
// duration, while it waits for the next step's (paper, section 4.2): 1 is never
// longer, Infinite has no bound. Values below 1 are invalid.
type ExpandLimit float64

// Infinite is the expand limit without bound.
var Infinite = ExpandLimit(math.Inf(1))
