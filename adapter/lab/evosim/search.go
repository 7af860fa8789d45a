package evosim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/planner"
)

// searchFlags holds the options of the search strategies.
type searchFlags struct {
	budget      time.Duration
	evaluations int64
	seed        uint64
	objective   objective
}

// objective is the value of --objective.
type objective planner.Objective

func (o *objective) String() string { return planner.Objective(*o).String() }
func (o *objective) Type() string   { return "makespan|mean-completion" }
func (o *objective) Set(s string) error {
	for _, known := range []planner.Objective{planner.Makespan, planner.MeanCompletion} {
		if s == known.String() {
			*o = objective(known)
			return nil
		}
	}
	return errors.New(`must be "makespan" or "mean-completion"`)
}

func (f *searchFlags) add(cmd *cobra.Command, seed string) {
	flags := cmd.Flags()
	flags.DurationVar(&f.budget, "budget", 0, "time per plan of a search, e.g. 25ms (default: by evaluations)")
	flags.Int64Var(&f.evaluations, "evaluations", 0, "placements to try per search (default: by the length of the list)")
	flags.Uint64Var(&f.seed, seed, 0, "random seed of the search")
	flags.Var(&f.objective, "objective", "what a search minimises")
}

func (f *searchFlags) check() error {
	switch {
	case f.budget < 0:
		return fmt.Errorf("--budget=%v: must not be negative", f.budget)
	case f.evaluations < 0:
		return fmt.Errorf("--evaluations=%d: must not be negative", f.evaluations)
	}
	return nil
}

// apply returns the strategy with the flags if it is a search. The search ends with the context.
func (f *searchFlags) apply(ctx context.Context, s planner.Strategy) planner.Strategy {
	search, ok := s.(planner.Search)
	if !ok {
		return s
	}
	search.Seed, search.MaxEvaluations, search.Objective = f.seed, f.evaluations, planner.Objective(f.objective)
	if f.budget > 0 && f.evaluations == 0 {
		search.MaxEvaluations = -1
	}
	return timedSearch{search, ctx, f.budget}
}

// timedSearch is a search with a time budget per plan; 0 for none.
type timedSearch struct {
	planner.Search
	ctx    context.Context
	budget time.Duration
}

// Optimise starts the time budget and searches.
func (t timedSearch) Optimise(p planner.Problem) (planner.SearchResult, error) {
	end := time.Now().Add(t.budget)
	t.Stop = func() bool { return t.ctx.Err() != nil || t.budget > 0 && !time.Now().Before(end) }
	r, err := t.Search.Optimise(p)
	if err == nil {
		err = t.ctx.Err()
	}
	return r, err
}

func (t timedSearch) Plan(p planner.Problem) (planner.Schedule, error) {
	r, err := t.Optimise(p)
	return r.Schedule, err
}

// searchJSON holds what a search reports beside its plan.
type searchJSON struct {
	Objective   string  `json:"objective"`
	Value       float64 `json:"value"`    // seconds
	Baseline    float64 `json:"baseline"` // noX's value, in seconds
	Bound       float64 `json:"bound"`    // in seconds; no plan can beat it
	BoundBy     string  `json:"bound_by"`
	Gap         float64 `json:"gap"` // percent by which value exceeds bound
	Evaluations int64   `json:"evaluations"`
}

// planWith plans and, if the strategy searches, also returns what is known about the plan.
func planWith(s planner.Strategy, p planner.Problem) (planner.Schedule, *searchJSON, error) {
	search, ok := s.(timedSearch)
	if !ok {
		plan, err := s.Plan(p)
		return plan, nil, err
	}
	r, err := search.Optimise(p)
	return r.Schedule, &searchJSON{search.Objective.String(), r.Objective, r.Baseline, r.Bound.Value, r.Bound.Reason, r.Gap(), r.Evaluations}, err
}

// planningError turns a planning error into a failure, unless the workload is at fault.
func planningError(err error) error {
	if errors.As(err, new(*planner.FitError)) || errors.As(err, new(*planner.ProblemError)) {
		return err
	}
	return Failure{err}
}
