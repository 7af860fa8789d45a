package profile

import (
	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// Placement is a scheduled EP (paper, section 3.1): a requested EP, delayed to Start and with
// expanded steps.
type Placement struct {
	Start int64   // seconds
	Steps Profile // with the durations for which nodes are held

	// Choice is the index of the moldable job's profile, from 0.
	Choice int
}

// End returns the completion time in seconds.
func (p Placement) End() int64 { return exact.AddTime(p.Start, p.Steps.Duration()) }

// Boundaries returns the start of every step and the end: len(Steps)+1 seconds.
func (p Placement) Boundaries() []int64 {
	b := make([]int64, 0, len(p.Steps)+1)
	at := p.Start
	for _, s := range p.Steps {
		b = append(b, at)
		at += s.Duration
	}
	return append(b, at)
}

// At returns the number of nodes held at second t.
func (p Placement) At(t int64) int { return p.Steps.At(t - p.Start) }
