package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/planner"
)

// Comparison holds the strategies' plans for the same workloads.
type Comparison struct {
	Workloads  []planner.Problem
	Strategies []planner.Strategy
	Outcomes   [][]Outcome // by workload w and strategy s: Outcomes[w][s]
}

// Outcome is one plan.
type Outcome struct {
	Schedule planner.Schedule
	Metrics  planner.Metrics
	Took     time.Duration // planning time only
	Bound    float64       // proven lower bound of the makespan, in seconds
}

// Compare plans every workload with every strategy, on that many workers, and checks every plan.
// progress, if not nil, is called after every plan, by one worker at a time.
func Compare(ctx context.Context, workloads []planner.Problem, strategies []planner.Strategy, workers int, progress func()) (Comparison, error) {
	c := Comparison{Workloads: workloads, Strategies: strategies,
		Outcomes: make([][]Outcome, len(workloads))}
	bounds := make([]func() float64, len(workloads))
	for i, p := range workloads {
		c.Outcomes[i] = make([]Outcome, len(strategies))
		bounds[i] = sync.OnceValue(func() float64 { return planner.LowerBound(p, planner.Makespan, planner.Infinite).Value })
	}
	err := each(ctx, len(workloads)*len(strategies), workers, func(_ context.Context, n int) error {
		w, s := n/len(strategies), n%len(strategies)
		outcome, err := outcomeOf(workloads[w], strategies[s])
		if err != nil {
			return fmt.Errorf("workload %d: %s: %w", w+1, strategies[s].Name(), err)
		}
		outcome.Bound = bounds[w]()
		c.Outcomes[w][s] = outcome
		return nil
	}, progress)
	return c, err
}

func outcomeOf(p planner.Problem, s planner.Strategy) (Outcome, error) {
	begin := time.Now()
	schedule, err := s.Plan(p)
	took := time.Since(begin)
	if err != nil {
		return Outcome{}, err
	}
	against := p
	if planner.IsRigid(s) {
		against = p.Rigid()
	}
	if err := planner.Verify(against, schedule, planner.ExpandLimitOf(s)); err != nil {
		return Outcome{}, err
	}
	return Outcome{Schedule: schedule, Metrics: planner.Measure(p, schedule), Took: took}, nil
}

// Figure is one metric of a comparison.
type Figure struct {
	Name string // name in JSON
	Unit string
	Of   func(Outcome) float64
}

// Figures lists the metrics for reports, each as planned, not relative to another strategy. The gap
// is how much the makespan exceeds Bound.
var Figures = []Figure{
	{"makespan", "s", func(o Outcome) float64 { return float64(o.Metrics.Makespan) }},
	{"gap", "%", func(o Outcome) float64 { return 100 * (float64(o.Metrics.Makespan) - o.Bound) / max(o.Bound, 1) }},
	{"effective_utilisation", "%", func(o Outcome) float64 { return o.Metrics.EffectiveUtilisation }},
	{"utilisation", "%", func(o Outcome) float64 { return o.Metrics.Utilisation }},
	{"waste", "%", func(o Outcome) float64 { return o.Metrics.Waste }},
	{"avg_completion", "s", func(o Outcome) float64 { return o.Metrics.AvgCompletion }},
	{"avg_wait", "s", func(o Outcome) float64 { return o.Metrics.AvgWait }},
	{"expanded_jobs", "%", func(o Outcome) float64 { return o.Metrics.ExpandedApps }},
	{"schedule_ms", "ms", func(o Outcome) float64 { return float64(o.Took) / float64(time.Millisecond) }},
}

// Values returns a figure of strategy s, one for every workload.
func (c Comparison) Values(f Figure, s int) []float64 {
	values := make([]float64, len(c.Workloads))
	for w := range values {
		values[w] = f.Of(c.Outcomes[w][s])
	}
	return values
}

// Summary returns the minimum, average and maximum of a figure of strategy s.
func (c Comparison) Summary(f Figure, s int) Range {
	var g gather
	for _, v := range c.Values(f, s) {
		g.add(v)
	}
	return g.Range
}
