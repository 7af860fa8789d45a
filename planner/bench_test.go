package planner_test

import (
	"fmt"
	"testing"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/workload"
)

// queue is n jobs of 5 steps, each 500–3600 s and 1–75 % of the nodes, all queued
// at second 0.
func queue(n int64, nodes int) planner.Problem {
	return workload.Paper{
		Jobs:      workload.Range{Min: n, Max: n},
		Steps:     workload.Range{Min: 5, Max: 5},
		Duration:  workload.Range{Min: 500, Max: 3600},
		StepNodes: workload.Range{Min: 1, Max: int64(nodes) * 3 / 4},
		Nodes:     nodes,
	}.Generate(1, 0)
}

func strategy(b *testing.B, name string) planner.Strategy {
	b.Helper()
	s, err := planner.StrategyByName(name)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func plan(b *testing.B, s planner.Strategy, p planner.Problem) planner.Schedule {
	schedule, err := s.Plan(p)
	if err != nil {
		b.Fatal(err)
	}
	return schedule
}

// BenchmarkPaper plans tests of the paper's size: 15–20 jobs of 1–10 steps on 100
// nodes. One operation is one test.
func BenchmarkPaper(b *testing.B) {
	problems := make([]planner.Problem, 64)
	for i := range problems {
		problems[i] = workload.DefaultPaper.Generate(1, i)
	}
	for _, name := range planner.PaperStrategies() {
		b.Run(name, func(b *testing.B) {
			s := strategy(b, name)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				plan(b, s, problems[i%len(problems)])
			}
		})
	}
}

// BenchmarkQueue plans long queues on 1,000 nodes. One operation is one plan.
func BenchmarkQueue(b *testing.B) {
	for _, name := range []string{"noX", "2X+c", "rigid", "infX+c"} {
		for _, n := range []int64{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				s, p := strategy(b, name), queue(n, 1000)
				for b.Loop() {
					plan(b, s, p)
				}
			})
		}
	}
}

// BenchmarkNodes plans 1,000 jobs on clusters of different sizes.
func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s, p := strategy(b, "noX"), queue(1000, nodes)
			for b.Loop() {
				plan(b, s, p)
			}
		})
	}
}
