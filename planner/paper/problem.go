package paper

import (
	"fmt"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// Job is a job to plan.
type Job struct {
	ID          string
	Submit      int64 // seconds; the job never starts before
	Profile     profile.Profile
	ExpandLimit profile.ExpandLimit // 0 for the strategy's

	// Alternatives holds further profiles of a moldable job, which gets either Profile or one of
	// these, by its preference.
	Alternatives []profile.Profile
	By           Preference
}

// Busy is a number of nodes in use by others.
type Busy struct {
	Start    int64 // seconds
	Duration int64 // seconds; Forever for no end
	Nodes    int
}

// end returns the second from which on the nodes are free, or Forever.
func (b Busy) end() int64 {
	if b.Duration == exact.Forever {
		return exact.Forever
	}
	return exact.AddTime(b.Start, b.Duration)
}

// Problem is a strategy's input: jobs, in list order, on a cluster.
type Problem struct {
	Nodes int
	Busy  []Busy
	Jobs  []Job
}

// Schedule holds the placements of a problem's jobs, in the same order.
type Schedule []profile.Placement

// Strategy is a planning algorithm.
type Strategy interface {
	// Name returns the name by which StrategyByName finds the strategy.
	Name() string
	// Plan places every job of a valid problem, or returns which one cannot be placed (*FitError).
	// Equal problems get equal schedules.
	Plan(Problem) (Schedule, error)
}

// FitError means that a job fits nowhere.
type FitError struct {
	Job    int    // index into Problem.Jobs
	ID     string // of that job
	Reason string
}

func (e *FitError) Error() string { return fmt.Sprintf("job %q fits nowhere: %s", e.ID, e.Reason) }

// ProblemError describes what is wrong with a problem.
type ProblemError struct {
	Job   int    // index into Problem.Jobs; -1 if none
	ID    string // of that job
	Field string // as in the workload file, e.g. "profile", "busy[3].nodes"
	Err   error
}

func (e *ProblemError) Error() string {
	if e.Job < 0 {
		return fmt.Sprintf("%s: %v", e.Field, e.Err)
	}
	return fmt.Sprintf("job %d (%q): %s: %v", e.Job+1, e.ID, e.Field, e.Err)
}

func (e *ProblemError) Unwrap() error { return e.Err }

// Validate returns what is wrong with the problem as a *ProblemError. Jobs may share an ID here:
// strategies distinguish jobs by their index.
func (p Problem) Validate() error {
	fail := func(field, format string, args ...any) error {
		return &ProblemError{Job: -1, Field: field, Err: fmt.Errorf(format, args...)}
	}
	if p.Nodes < 1 || p.Nodes > profile.MaxNodes {
		return fail("nodes", "%d is not within 1 … %d", p.Nodes, profile.MaxNodes)
	}
	for i, b := range p.Busy {
		switch {
		case b.Nodes < 0 || b.Nodes > profile.MaxNodes:
			return fail(fmt.Sprintf("busy[%d].nodes", i), "%d is not within 0 … %d", b.Nodes, profile.MaxNodes)
		case b.Duration < 0:
			return fail(fmt.Sprintf("busy[%d].duration", i), "%d is negative", b.Duration)
		case b.Start < -exact.Horizon || b.Start > exact.Horizon:
			return fail(fmt.Sprintf("busy[%d].start", i), "%d is out of range", b.Start)
		}
	}
	for i, j := range p.Jobs {
		fail := func(field string, err error) error {
			return &ProblemError{Job: i, ID: j.ID, Field: field, Err: err}
		}
		if err := j.Profile.Validate(); err != nil {
			return fail("profile", err)
		}
		if len(j.Alternatives) >= MaxAlternatives {
			return fail("alternatives", fmt.Errorf("there are more than %d", MaxAlternatives))
		}
		for k, a := range j.Alternatives {
			if err := a.Validate(); err != nil {
				return fail(fmt.Sprintf("alternatives[%d]", k), err)
			}
		}
		if peak := j.LeastPeak(); peak > p.Nodes {
			what := "needs"
			if j.IsMoldable() {
				what = "every alternative needs more nodes than there are, the smallest"
			}
			return fail("profile", fmt.Errorf("%s %d nodes, the cluster has %d", what, peak, p.Nodes))
		}
		if j.By < ByCompletion || j.By > ByNodeHours {
			return fail("by", fmt.Errorf("%d is no preference", j.By))
		}
		if j.Submit < -exact.Horizon || j.Submit > exact.Horizon {
			return fail("submit", fmt.Errorf("%d is out of range", j.Submit))
		}
		if j.ExpandLimit != 0 {
			if err := j.ExpandLimit.Validate(); err != nil {
				return fail("expand_limit", err)
			}
		}
	}
	return nil
}

// Timeline returns the resource EP at the start: the sum of Busy.
func (p Problem) Timeline() *timeline.Timeline {
	t := new(timeline.Timeline)
	p.occupy(t)
	return t
}

// occupy adds Busy to a timeline.
func (p Problem) occupy(t *timeline.Timeline) {
	for _, b := range p.Busy {
		t.Add(b.Start, b.end(), b.Nodes)
	}
}

// Rigid returns the problem as a scheduler without evolution sees it: every job needs its peak for
// its whole duration and is never expanded (paper, section 5.1).
func (p Problem) Rigid() Problem {
	jobs := make([]Job, len(p.Jobs))
	for i, j := range p.Jobs {
		j.Profile = j.Profile.Rigid()
		if j.IsMoldable() {
			all := make([]profile.Profile, len(j.Alternatives))
			for k, a := range j.Alternatives {
				all[k] = a.Rigid()
			}
			j.Alternatives = all
		}
		jobs[i] = j
	}
	p.Jobs = jobs
	return p
}
