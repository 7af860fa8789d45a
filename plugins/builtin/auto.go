package builtin

import (
	"cmp"
	"context"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
)

// Auto returns a strategy that plans with several others, and takes the best of their plans (dynP: Streit, A
// Self-Tuning Job Scheduler Family with Dynamic Policy Switching, 2002).
func Auto() strategy.Definition {
	return strategy.Definition{
		Name:    "auto",
		Version: version,
		Help:    "Plans with noX, klein, minwaste, and search, as far as the time suffices, and takes the plan that is best for the objective, then the one that wastes least.",
		Parameters: []strategy.Parameter{
			{Name: "objective", Type: strategy.String, Default: "mean-completion", Choices: []string{"makespan", "mean-completion", "waste"}, Help: "what is made as small as can be found"},
			{Name: "fair", Type: strategy.Bool, Default: "true", Help: "search completes no job later than list order would"},
			expandLimit("2"),
			{Name: "time", Type: strategy.Duration, Default: "500ms", Min: "10ms", Max: "1m", Help: "begin no further strategy after so long; must be less than strategies.timeout"},
		},
		New: newAuto,
	}
}

// auto plans with its members in turn. The first one's plan stands if none is better.
type auto struct {
	members []member
	limit   planner.ExpandLimit
	better  func(a, b planner.Metrics) int
	time    time.Duration
}

type member struct {
	name string
	planner.Strategy
}

func newAuto(v strategy.Values) (planner.Strategy, error) {
	limit, err := planner.ParseExpandLimit(v.String("expand_limit"))
	if err != nil {
		return nil, err
	}
	a := auto{limit: limit, better: objectives[v.String("objective")], time: v.Duration("time")}
	text := v.String("expand_limit")
	for _, m := range []struct{ name, of string }{{"noX", "noX"}, {"klein", text + "X"}, {"klein, compacted", text + "X+c"}, {"minwaste", text + "X+m"}} {
		s, err := planner.StrategyByName(m.of)
		if err != nil {
			return nil, err
		}
		a.members = append(a.members, member{m.name, s})
	}
	objective := planner.MeanCompletion
	if v.String("objective") == "makespan" {
		objective = planner.Makespan
	}
	a.members = append(a.members, member{"search", planner.Search{Objective: objective, Fair: v.Bool("fair"), Limit: limit, Seed: 1}})
	return a, nil
}

// objectives compares the measures of two plans; less is better.
var objectives = map[string]func(a, b planner.Metrics) int{
	"makespan":        func(a, b planner.Metrics) int { return cmp.Compare(a.Makespan, b.Makespan) },
	"mean-completion": func(a, b planner.Metrics) int { return cmp.Compare(a.AvgCompletion, b.AvgCompletion) },
	"waste":           func(a, b planner.Metrics) int { return cmp.Compare(a.Waste, b.Waste) },
}

// Name implements planner.Strategy.
func (a auto) Name() string { return "auto" }

// ExpandLimit returns the limit of jobs without their own.
func (a auto) ExpandLimit() planner.ExpandLimit { return a.limit }

// Moldable reports that all members know moldable jobs.
func (a auto) Moldable() bool { return true }

// AsksOnce reports that a pool is planned once, since that takes several plans.
func (a auto) AsksOnce() bool { return true }

// Plan implements planner.Strategy.
func (a auto) Plan(p planner.Problem) (planner.Schedule, error) {
	answer, err := a.PlanRequest(context.Background(), strategy.Request{Problem: p})
	if err != nil {
		return nil, err
	}
	if err := answer.FirstUnfit(p); err != nil {
		return nil, err
	}
	return answer.Schedule, nil
}

// PlanRequest implements strategy.Planner.
func (a auto) PlanRequest(ctx context.Context, r strategy.Request) (best strategy.Answer, err error) {
	end := time.Now().Add(a.time)
	late := func() bool { return ctx.Err() != nil || time.Now().After(end) }
	var of planner.Metrics
	for i, m := range a.members {
		if i > 0 && late() {
			break
		}
		s := m.Strategy
		if search, ok := s.(planner.Search); ok {
			search.Stop = late
			s = search
		}
		answer, err := strategy.Run(ctx, s, r)
		if err != nil {
			if i == 0 {
				return best, err
			}
			continue // the others have a plan
		}
		if got := measure(r.Problem, answer); i == 0 || a.isBetter(answer, best, got, of) {
			best, of = answer, got
			best.By = m.name
		}
	}
	return best, nil
}

// isBetter reports whether an answer is better than the best one so far: jobs that fit nowhere count first.
func (a auto) isBetter(answer, best strategy.Answer, got, of planner.Metrics) bool {
	return cmp.Or(cmp.Compare(len(answer.Unfit), len(best.Unfit)), a.better(got, of), cmp.Compare(got.Waste, of.Waste)) < 0
}

// measure returns the metrics of the jobs that fit.
func measure(p planner.Problem, a strategy.Answer) planner.Metrics {
	if len(a.Unfit) == 0 {
		return planner.Measure(p, a.Schedule)
	}
	fit, s := p, planner.Schedule(nil)
	fit.Jobs = nil
	for i, j := range p.Jobs {
		if _, unfit := a.Unfit[i]; !unfit {
			fit.Jobs, s = append(fit.Jobs, j), append(s, a.Schedule[i])
		}
	}
	return planner.Measure(fit, s)
}
