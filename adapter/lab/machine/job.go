package machine

import (
	"errors"
	"fmt"
	"math"

	"github.com/evoslurm/evoslurm/planner/malleable"
)

// Kind says who chooses a job's size, and when.
type Kind uint8

const (
	Rigid     Kind = iota // its user, once for all
	Moldable              // the scheduler, at its start
	Malleable             // the scheduler, also while it runs
	Evolving              // the application: every phase has its size
	Both                  // evolving and malleable: the scheduler, within the bounds of every phase
)

var kinds = [...]string{"rigid", "moldable", "malleable", "evolving", "evolving+malleable"}

func (k Kind) String() string { return kinds[k] }

// Resizable reports whether a scheduler may change the size of such a job that runs.
func (k Kind) Resizable() bool { return k == Malleable || k == Both }

// declares reports whether the job tells its phases.
func (k Kind) declares() bool { return k == Evolving || k == Both }

// Job is what is submitted.
type Job struct {
	Submit int64 // seconds
	Kind   Kind
	Phases []Phase // at least one
	Limit  int64   // seconds that its user asks for; 0: not told

	Sizes malleable.Sizes // that it takes, of those within its bounds

	// How long after a scheduler's word a running job grows and shrinks, in seconds. Where a
	// phase has Points it is the next of these instead.
	GrowDelay, Grace int64
}

// Phase is work that scales in one way.
type Phase struct {
	Work  float64 // seconds on one node
	Speed Curve

	// The scheduler chooses Min … Max nodes; Pref is what the user would ask for. Of a job that
	// does not declare its phases they are the same in all.
	Min, Pref, Max int

	// Points is how many equal parts the work has, between which the size can change; 0: it can at
	// any second.
	Points int
}

// Curve is a speed-up: Curve[n] on n nodes, Curve[0] is 0.
type Curve []float64

// At is the speed-up on n nodes.
func (c Curve) At(n int) float64 { return c[min(max(n, 0), len(c)-1)] }

// Amdahl is the speed-up on up to so many nodes where a part of the work is parallel.
func Amdahl(parallel float64, nodes int) Curve {
	c := make(Curve, nodes+1)
	for n := 1; n <= nodes; n++ {
		c[n] = 1 / (1 - parallel + parallel/float64(n))
	}
	return c
}

// Linear is the speed-up of what scales perfectly.
func Linear(nodes int) Curve { return Amdahl(1, nodes) }

// Seconds is how long a phase takes on n nodes.
func (p Phase) Seconds(n int) int64 { return ceil(p.Work / p.Speed[n]) }

// ceil rounds up, but for what is a fault of rounding.
func ceil(x float64) int64 { return int64(math.Ceil(x - 1e-6)) }

// Validate says what is wrong with a job on a machine of so many nodes.
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

// bounds are the sizes that a scheduler may choose in a phase.
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
