package bag

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// prompt is a worker whose tasks end at once.
type prompt struct {
	*Member
	split splitter
}

func (p *prompt) heard(line []byte) {
	var m toWorker
	if json.Unmarshal(line, &m) != nil || m.Run == nil {
		return
	}
	end, _ := json.Marshal(fromWorker{Ended: &over{Task: m.Run.Task, Run: m.Run.Run, Seconds: 1.25}})
	_, _ = p.Write(append(end, '\n'))
}

// workOff has a leader lease all tasks of a new bag to a worker of 64 slots, and write its journal.
func workOff(b *testing.B, dir string, tasks int) {
	b.Helper()
	j, s, err := Open(dir, list(tasks), 7, time.Unix(1, 0))
	if err != nil {
		b.Fatal(err)
	}
	l := Lead(benchOptions(b, dir), j, s)
	finish(b, l, tasks)
}

func benchOptions(b *testing.B, dir string) Options {
	return Options{Setup: Setup{Dir: dir, Output: filepath.Join(dir, outFolder, "%a"), Keep: Keeping{Kind: KeepNone}}, Say: b.Logf}
}

// finish has a worker of 64 slots end all tasks.
func finish(b *testing.B, l *Leader, tasks int) {
	b.Helper()
	p := &prompt{}
	p.split.do = p.heard
	p.Member = l.Join("node-1234", 64, struct {
		io.Writer
		io.Closer
	}{writerFunc(p.split.Write), closer{}})
	_, _ = p.Write([]byte(`{"hello":true}` + "\n"))
	<-l.Over()
	p.Leave()
	if m, err := l.Close(); err != nil || m.Done != tasks {
		b.Fatalf("%+v, %v", m, err)
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLeader measures what a task costs its leader, from the lease to the record of its end. Pauses between writes are no
// processor time.
func BenchmarkLeader(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			before := processorTime(b)
			for i := range b.N {
				workOff(b, filepath.Join(b.TempDir(), fmt.Sprint("bag-", i)), n)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/float64(n), "cpu-ns/task")
		})
	}
}

// BenchmarkRead measures how long the journals of a bag take to read, and what memory its state keeps.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "bag")
			workOff(b, dir, n)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s, err := Read(dir)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if err != nil || !s.Over() {
				b.Fatal(errors.Join(err, errors.New("tasks are left")))
			}
			begun := processorTime(b)
			for range b.N {
				if _, err := Read(dir); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N)/float64(n), "cpu-ns/task")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/task")
			runtime.KeepAlive(s)
		})
	}
}

// BenchmarkCampaign measures what a task of a campaign costs its leader, with the leases of shares, and what reading it costs.
func BenchmarkCampaign(b *testing.B) {
	for _, n := range []int{2000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var leading, reading time.Duration
			begun := time.Now()
			for i := range b.N {
				dir, before := filepath.Join(b.TempDir(), fmt.Sprint("bag-", i)), processorTime(b)
				if err := Create(dir, list(n), nil); err != nil {
					b.Fatal(err)
				}
				c, err := Join(dir, list(n), "a", 7)
				if err != nil {
					b.Fatal(err)
				}
				finish(b, LeadCampaign(benchOptions(b, dir), c), n)
				after := processorTime(b)
				if _, err := Read(dir); err != nil {
					b.Fatal(err)
				}
				leading, reading = leading+after-before, reading+processorTime(b)-after
			}
			each := float64(b.N) * float64(n)
			b.ReportMetric(float64(leading)/each, "cpu-ns/task")
			b.ReportMetric(float64(reading)/each, "read-cpu-ns/task")
			b.ReportMetric(float64(time.Since(begun))/each, "ns/task")
		})
	}
}
