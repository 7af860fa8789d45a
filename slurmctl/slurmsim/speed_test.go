package slurmsim_test

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// BenchmarkTrace runs the jobs of a trace in the Standard Workload Format, named by EVOSLURM_TRACE,
// only through the model: rigid jobs on nodes of one CPU, one node per processor of the trace.
func BenchmarkTrace(b *testing.B) {
	name := os.Getenv("EVOSLURM_TRACE")
	if name == "" {
		b.Skip("EVOSLURM_TRACE names no trace")
	}
	nodes, jobs := trace(b, name)
	b.ReportAllocs()
	var before, after syscall.Rusage
	for b.Loop() {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		c := slurmsim.New(slurmsim.Options{Nodes: nodes, CPUs: 1})
		begun := c.Now()
		for _, a := range jobs {
			c.After(a.after, func() {
				if _, err := c.Submit(a.job); err != nil {
					b.Fatal(err)
				}
			})
		}
		for c.Step() {
		}
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano()+after.Stime.Nano()-before.Stime.Nano())/1e9, "cpu-s")
		b.ReportMetric(c.Now().Sub(begun).Hours()/24, "days")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "MB")
}

// arrival is a job with its submit time.
type arrival struct {
	after time.Duration
	job   slurmsim.Job
}

// trace reads a trace.
func trace(b *testing.B, name string) (nodes int, jobs []arrival) {
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	first := -1
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "; MaxNodes:"); ok {
			nodes, _ = strconv.Atoi(strings.TrimSpace(rest))
		}
		w := strings.Fields(line)
		if len(w) < 18 || strings.HasPrefix(line, ";") {
			continue
		}
		at, _ := strconv.Atoi(w[1])
		lasts, _ := strconv.Atoi(w[3])
		size, _ := strconv.Atoi(w[4])
		if first < 0 {
			first = at
		}
		d := time.Duration(max(lasts, 1)) * time.Second
		jobs = append(jobs, arrival{time.Duration(at-first) * time.Second,
			slurmsim.Job{Script: "#!", Nodes: size, Lasts: d, TimeLimit: d + time.Minute}})
	}
	return nodes, jobs
}
