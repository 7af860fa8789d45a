//go:build archives

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/internal/naive"
	"github.com/evoslurm/evoslurm/adapter/lab/machine"
	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var traces = flag.String("traces", "", "folder of real traces (make archives)")

// TestBaselineArchives checks that on lublin-256 and NASA's trace every start equals the naive one
// (random workloads: TestBackfillRandom of adapter/lab/machine).
func TestBaselineArchives(t *testing.T) {
	for _, name := range []string{"lublin-256.swf", "nasa-ipsc-1993.swf.gz"} {
		tr := archive(t, name)
		jobs, _ := tr.Runnable()
		var plain []naive.Rigid
		for _, j := range jobs {
			plain = append(plain, naive.Rigid{Submit: int64(j.Submit), Run: j.Seconds(), Limit: max(j.LimitSeconds(), j.Seconds()), Nodes: j.Size()})
		}
		for scheduler, reference := range map[string]func(int, []naive.Rigid) []int64{"easy": naive.EASY, "conservative": naive.Conservative} {
			out, err := sim.Baseline(t.Context(), tr, scheduler, tr.Header.Machine(), 1)
			must.OK(t, err)
			differ := 0
			for i, start := range reference(tr.Header.Machine(), plain) {
				if int64(out.Jobs[i].Start()) != start {
					differ++
				}
			}
			if differ > 0 {
				t.Errorf("%s, %s: %d of %d starts differ", name, scheduler, differ, len(jobs))
			}
		}
	}
}

func archive(t testing.TB, name string) trace.Trace {
	f, err := os.Open(filepath.Join(*traces, name))
	if err != nil {
		t.Fatalf("-traces=FOLDER: %v", err)
	}
	defer f.Close()
	tr, err := trace.Read(f)
	must.OK(t, err)
	return tr
}

// BenchmarkBaseline reads and runs a trace.
func BenchmarkBaseline(b *testing.B) {
	for _, name := range []string{"lublin-256.swf", "nasa-ipsc-1993.swf.gz", "theta-2022.swf.gz", "curie-2011.swf.gz"} {
		for _, scheduler := range []string{"easy", "conservative"} {
			b.Run(name+"/"+scheduler, func(b *testing.B) {
				before := processorTime()
				for b.Loop() {
					tr := archive(b, name)
					if _, err := sim.Baseline(b.Context(), tr, scheduler, tr.Header.Machine(), 1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((processorTime()-before)/float64(b.N), "cpu-s/op")
				var usage syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
				b.ReportMetric(float64(usage.Maxrss)/1e3, "MB-at-most")
			})
		}
	}
}

// BenchmarkEveryEvent replans all waiting and running jobs of lublin-256 at every event, by the
// planner's own fit (noX): the jobs as they are, and one in ten with three steps of half, all, and
// half of its nodes.
func BenchmarkEveryEvent(b *testing.B) {
	tr := archive(b, "lublin-256.swf")
	jobs, _ := tr.Runnable()
	for _, share := range []int{0, 10} {
		b.Run(fmt.Sprintf("evolving=%d%%", share), func(b *testing.B) {
			var list []machine.Job
			for i, j := range jobs {
				n, work := j.Size(), float64(j.Seconds())*float64(j.Size())
				phase := func(nodes int, work float64) machine.Phase {
					return machine.Phase{Work: work, Speed: machine.Linear(n), Min: nodes, Pref: nodes, Max: nodes}
				}
				one := machine.Job{Submit: int64(j.Submit), Phases: []machine.Phase{phase(n, work)}}
				if half := max(n/2, 1); share > 0 && i%(100/share) == 0 {
					one.Kind, one.Phases = machine.Evolving, []machine.Phase{phase(half, work/3), phase(n, work/3), phase(half, work/3)}
				}
				list = append(list, one)
			}
			before := processorTime()
			for b.Loop() {
				if _, err := machine.Simulate(b.Context(), 256, list, &machine.Planned{Ahead: len(list)}, machine.Options{Every: true}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime()-before)/float64(b.N), "cpu-s/op")
		})
	}
}

// processorTime returns the processor time of the process, in seconds.
func processorTime() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
