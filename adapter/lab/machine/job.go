package machine

import (
	"errors"
	"fmt"
	"math"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Kind says what chooses a job's size, and when.
type Kind uint8

const (
	Rigid     Kind = iota // the user, once
	Moldable              // the scheduler, at its start
	Malleable             // the scheduler, also while it runs
	Evolving              // the application: every phase has its size
	Both                  // evolving and malleable: the scheduler, within the bounds of every phase
)

var kinds = [...]string{"rigid", "moldable", "malleable", "evolving", "evolving+malleable"}

func (k Kind) String() string { return kinds[k] }

// Resizable reports whether a scheduler may change the size of such a job that runs.
func (k Kind) Resizable() bool { return k == Malleable || k == Both }

// declares reports whether the job declares its phases.
func (k Kind) declares() bool { return k == Evolving || k == Both }

// Job is a submitted job.
type Job struct {
	Submit int64 // seconds
	Kind   Kind
	Phases []Phase // at least one
	Limit  int64   // seconds requested by the user; 0 if unknown

	Sizes malleable.Sizes // usable sizes within the bounds

	// Delays, in seconds, after which a running job grows and shrinks when the scheduler says so.
	// In a phase with Points, it changes at the next point instead.
	GrowDelay, Grace int64
}

// Phase is work that scales in one way.
type Phase struct {
	Work  float64 // seconds on one node
	Speed Curve

	// The scheduler chooses Min … Max nodes; Pref is the user's choice. Without declared phases,
	// they are equal in all phases.
	Min, Pref, Max int

	// Points is the number of equal parts of the work between which the size can change; 0 if it
	// can change at any second.
	Points int
}

// Curve is a speed-up: Curve[n] on n nodes, Curve[0] is 0.
type Curve []float64

// At returns the speed-up on n nodes.
func (c Curve) At(n int) float64 { return c[min(max(n, 0), len(c)-1)] }

// Amdahl returns the speed-up on up to that many nodes if a part of the work is parallel.
func Amdahl(parallel float64, nodes int) Curve {
	c := make(Curve, nodes+1)
	for n := 1; n <= nodes; n++ {
		c[n] = 1 / (1 - parallel + parallel/float64(n))
	}
	return c
}

// Linear returns a perfect speed-up.
func Linear(nodes int) Curve { return Amdahl(1, nodes) }

// Seconds returns how long a phase takes on n nodes.
func (p Phase) Seconds(n int) int64 { return ceil(p.Work / p.Speed[n]) }

// ceil rounds up, but ignores rounding errors.
func ceil(x float64) int64 { return int64(math.Ceil(x - 1e-6)) }

// Validate returns what is wrong with a job on a machine with that many nodes.
func (j Job) Validate(nodes int) error {
	if j.Submit < 0 || j.Limit < 0 || j.GrowDelay < 0 || j.Grace < 0 {
		return errors.New("a time is negative")
	}
	if len(j.Phases) == 0 {
		return errors.New("there is no phase")
	}
	for i, p := range j.Phases {
		switch {
		case !(p.Work > 0) || p.Work > 1e15:
			return fmt.Errorf("phase %d: work is %v, must be more than 0", i+1, p.Work)
		case p.Min < 1 || p.Min > p.Pref || p.Pref > p.Max || p.Max > nodes:
			return fmt.Errorf("phase %d: %d … %d … %d nodes; must rise from 1 to %d", i+1, p.Min, p.Pref, p.Max, nodes)
		case len(p.Speed) <= p.Max:
			return fmt.Errorf("phase %d: the speed-up is known up to %d nodes", i+1, len(p.Speed)-1)
		case p.Points < 0:
			return fmt.Errorf("phase %d: points is %d", i+1, p.Points)
		case !j.Kind.declares() && (p.Min != j.Phases[0].Min || p.Pref != j.Phases[0].Pref || p.Max != j.Phases[0].Max):
			return fmt.Errorf("phase %d: a %s job has the same bounds in all", i+1, j.Kind)
		}
		if err := (malleable.Bounds{Min: p.Min, Max: p.Max}).Validate(j.Sizes); err != nil {
			return fmt.Errorf("phase %d: %w", i+1, err)
		}
		for n := p.Min; n <= p.Max; n++ {
			if !(p.Speed[n] > 0) || math.IsInf(p.Speed[n], 1) {
				return fmt.Errorf("phase %d: the speed-up on %d nodes is %v", i+1, n, p.Speed[n])
			}
		}
	}
	return nil
}

// bounds returns the sizes that a scheduler may choose in a phase.
func (j *Job) bounds(phase int) (least, most int) {
	p := &j.Phases[phase]
	switch {
	case j.Kind == Rigid || j.Kind == Evolving:
		return p.Pref, p.Pref
	case j.Sizes == malleable.Any:
		return p.Min, p.Max
	}
	b := malleable.Bounds{Min: p.Min, Max: p.Max}
	return b.Least(j.Sizes), b.Most(j.Sizes)
}
