package planner_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/workload"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// queue returns n jobs of 5 steps, each 500–3600 s and 1–75 % of the nodes, all submitted at second
// 0.
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
	must.OK(b, err)
	return s
}

func plan(b *testing.B, s planner.Strategy, p planner.Problem) planner.Schedule {
	schedule, err := s.Plan(p)
	must.OK(b, err)
	return schedule
}

// measureCPU measures the processor time of an operation, which other work on the machine disturbs
// less than wall time.
func measureCPU(b *testing.B) func() {
	used := func() int64 {
		var r syscall.Rusage
		must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
		return r.Utime.Nano() + r.Stime.Nano()
	}
	begin := used()
	return func() { b.ReportMetric(float64(used()-begin)/float64(b.N), "cpu-ns/op") }
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
			defer measureCPU(b)()
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
				defer measureCPU(b)()
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
			defer measureCPU(b)()
			for b.Loop() {
				plan(b, s, p)
			}
		})
	}
}

// BenchmarkTimeline measures single operations on a timeline with 500,000 changes.
func BenchmarkTimeline(b *testing.B) {
	res := new(planner.Timeline)
	p := queue(100_000, 1000)
	for i, j := range p.Jobs {
		res.AddPlacement(planner.Placement{Start: int64(i) * 5_000, Steps: j.Profile})
	}
	at := func(i int) int64 { return int64(i) * 7_919_000 % 500_000_000 }
	b.Run("AddRemove", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			res.Add(at(i), at(i)+10_000, 100)
			res.Remove(at(i), at(i)+10_000, 100)
		}
	})
	b.Run("AddRemoveLong", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			res.Add(at(i), at(i)+100_000_000, 100)
			res.Remove(at(i), at(i)+100_000_000, 100)
		}
	})
	b.Run("Max", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			res.Max(at(i), at(i)+100_000_000)
		}
	})
	b.Run("Loc", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			res.Loc(at(i), at(i)+100_000_000)
		}
	})
	b.Run("EarliestFree", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			res.EarliestFree(at(i), 300, 1_000, 1000)
		}
	})
}
