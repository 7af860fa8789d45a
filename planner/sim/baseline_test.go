package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/sim"
	"github.com/evoslurm/evoslurm/planner/trace"
)

// TestBaseline: a few jobs, by hand, and what an outcome has.
func TestBaseline(t *testing.T) {
	const text = `; MaxProcs: 20
1 100 -1 100 12 -1 -1 12 100 -1 1 1 -1 -1 0 -1 -1 -1
2 101 -1 100 16 -1 -1 16 100 -1 1 1 -1 -1 0 -1 -1 -1
3 102 -1 200  6 -1 -1  6 200 -1 1 1 -1 -1 0 -1 -1 -1
4 103 -1   0  6 -1 -1  6 200 -1 5 1 -1 -1 0 -1 -1 -1
5 104 -1  50  3 -1 -1  3  90 -1 1 1 -1 -1 0 -1 -1 -1
`
	for name, want := range map[string]string{"fcfs": "0 99 198 196", "easy": "0 99 198 0", "conservative": "0 99 198 0"} {
		tr, err := trace.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		out, err := sim.Baseline(t.Context(), tr, name, 10, 2)
		if err != nil {
			t.Fatal(err)
		}
		var waits []string
		for _, j := range out.Jobs {
			waits = append(waits, fmt.Sprint(j.Wait))
		}
		if got := strings.Join(waits, " "); got != want || out.Header.Machine() != 10 || out.Jobs[1].Processors != 8 {
			t.Errorf("%s: waits %s, want %s; %+v", name, got, want, out.Header)
		}
	}
	if _, err := sim.Baseline(t.Context(), trace.Trace{}, "sjf", 10, 1); err == nil || !strings.Contains(err.Error(), "fcfs, easy, conservative") {
		t.Errorf("got %v", err)
	}
}

// TestBaselineArchives: on lublin-256 and NASA's trace every start is the naive one's. EVOSLURM_TRACES names
// the folder that has them.
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
			if err != nil {
				t.Fatal(err)
			}
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
	f, err := os.Open(filepath.Join(os.Getenv("EVOSLURM_TRACES"), name))
	if err != nil {
		t.Skip("EVOSLURM_TRACES names no folder with ", name)
	}
	defer f.Close()
	tr, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// BenchmarkBaseline reads and runs a trace.
func BenchmarkBaseline(b *testing.B) {
	for _, name := range []string{"lublin-256.swf", "nasa-ipsc-1993.swf.gz", "theta-2022.swf.gz", "curie-2011.swf.gz"} {
		for _, scheduler := range []string{"easy", "conservative"} {
			if scheduler == "conservative" && strings.HasPrefix(name, "curie") && os.Getenv("EVOSLURM_LONG") == "" {
				continue
			}
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

// processorTime is what the process has used, in seconds.
func processorTime() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
