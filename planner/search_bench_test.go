package planner_test

import (
	"fmt"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// paperTests returns the first tests of the paper's model with seed 1.
func paperTests(n int) []planner.Problem {
	problems := make([]planner.Problem, n)
	for i := range problems {
		problems[i] = workload.DefaultPaper.Generate(1, i)
	}
	return problems
}

// BenchmarkSearch plans tests of the paper's size within an evaluation count. One
// operation is one test; eff-% is the average effective utilisation, gap-% the
// average distance from the proven bound.
func BenchmarkSearch(b *testing.B) {
	problems := paperTests(64)
	for _, c := range []struct {
		name   string
		search planner.Search
	}{
		{"makespan/30k", planner.Search{MaxEvaluations: 30_000}},
		{"makespan/90k", planner.Search{MaxEvaluations: 90_000}},
		{"makespan/900k", planner.Search{MaxEvaluations: 900_000}},
		{"mean/90k", planner.Search{MaxEvaluations: 90_000, Objective: planner.MeanCompletion}},
		{"fair+infX/90k", planner.Search{MaxEvaluations: 90_000, Fair: true, Limit: planner.Infinite}},
	} {
		b.Run(c.name, func(b *testing.B) {
			utilisation, gap, n := 0.0, 0.0, 0.0
			for i := 0; b.Loop(); i++ {
				p := problems[i%len(problems)]
				r, err := c.search.Optimise(p)
				must.OK(b, err)
				utilisation += planner.Measure(p, r.Schedule).EffectiveUtilisation
				gap += r.Gap()
				n++
			}
			b.ReportMetric(utilisation/n, "eff-%")
			b.ReportMetric(gap/n, "gap-%")
		})
	}
}

// BenchmarkSearchQueue plans longer lists with the default number of evaluations.
func BenchmarkSearchQueue(b *testing.B) {
	for _, n := range []int64{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, gain := queue(n, 1000), 0.0
			for b.Loop() {
				r, err := planner.Search{}.Optimise(p)
				must.OK(b, err)
				gain = 100 * (1 - r.Objective/r.Baseline)
			}
			b.ReportMetric(gain, "gain-%")
		})
	}
}

// BenchmarkMinWaste compares with infX+c in BenchmarkPaper.
func BenchmarkMinWaste(b *testing.B) {
	problems := paperTests(64)
	s := strategy(b, "minwaste")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		plan(b, s, problems[i%len(problems)])
	}
}

// BenchmarkLowerBound proves bounds for tests of the paper's size.
func BenchmarkLowerBound(b *testing.B) {
	problems := paperTests(64)
	for i := 0; b.Loop(); i++ {
		planner.LowerBound(problems[i%len(problems)], planner.Makespan, 1)
	}
}
