package recorder

import (
	"bytes"
	"compress/flate"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

type noX struct{ planner.Strategy }

func (noX) Pin([]planner.Placement) {}
func (noX) Rigid() bool             { return false }

// polled returns a poll as a sidecar reads it: all text is new and must be compared.
func polled(o msg.Observation, now time.Time) msg.Observation {
	o.Jobs, o.Begun = slices.Clone(o.Jobs), now
	for i := range o.Jobs {
		for _, text := range []*string{&o.Jobs[i].Display, &o.Jobs[i].Partition, &o.Jobs[i].User, &o.Jobs[i].Comment, &o.Jobs[i].Reason} {
			*text = strings.Clone(*text)
		}
	}
	return o
}

// stepped is a core with the shell's inputs, with or without a recorder.
type stepped struct {
	core     *core.Core
	recorder *Recorder
	strategy noX
	steps    int
	used     time.Duration // processor time
}

func begun(b *testing.B, now time.Time) *stepped {
	none, err := planner.StrategyByName("noX")
	must.OK(b, err)
	return &stepped{core: core.New(msg.Site{Root: true, User: "root"}, config.Default(), msg.Strategy{ExpandLimit: 1}, now), strategy: noX{none}}
}

func (s *stepped) give(b *testing.B, now time.Time, inputs ...msg.Input) {
	before := processorTime(b)
	for len(inputs) > 0 {
		s.recorder.Inputs(now, inputs)
		effects := s.core.Step(now, inputs...)
		s.recorder.Effects(now, effects)
		s.steps++
		inputs = nil
		for _, e := range effects {
			switch e := e.(type) {
			case msg.Plan:
				inputs = append(inputs, e.Problem.Plan(s.strategy))
			case msg.Task:
				out := msg.Outcome{Task: e.ID}
				switch e.Command.(type) {
				case msg.ReadRequest:
					out.Result = msg.Asked{User: &slurmctl.User{UID: 1000, Name: "user"}}
				case msg.ReadLimits:
					out.Result = &slurmctl.Limits{}
				}
				inputs = append(inputs, out)
			}
		}
	}
	s.used += processorTime(b) - before
}

// processorTime returns what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCycle measures a cycle of the core at that load, in which 1 % of the jobs have changed:
// two cores get the same inputs in turns, one with a recorder. Times are processor times; the
// recorder's cost is the difference, including garbage collection. In a sidecar, polls and commands
// add to that.
func BenchmarkCycle(b *testing.B) {
	now := time.Unix(1.7e9, 0)
	both := [2]*stepped{begun(b, now), begun(b, now)} // the first one with a recorder
	r := New(b.TempDir(), 1024, "bench", Start{Begun: now, Site: msg.Site{Root: true, User: "root"}, Config: config.Default()})
	r.Warn = func(err error) { b.Error(err) }
	both[0].recorder = r
	poll, _ := statetest.Crowd(now)
	cycle := func() {
		now = now.Add(time.Second)
		for i := range both { // who is first pays for what both need
			one := both[(i+int(now.Unix()))%2]
			seen := polled(poll, now)
			one.give(b, now, seen)
		}
		poll.Config = nil
	}
	for _, s := range both {
		s.give(b, now, msg.Books{})
	}
	for range 5 {
		cycle()
	}
	r.flush(now)
	size := r.seg.size
	for _, s := range both {
		s.used, s.steps = 0, 0
	}
	random := rand.New(rand.NewPCG(3, 4))
	n := 0
	for b.Loop() {
		for range len(poll.Jobs) / 100 {
			poll.Jobs[random.IntN(len(poll.Jobs))].NumCPUs++
		}
		cycle()
		n++
	}
	r.flush(now)
	with, without := both[0].used.Seconds()*1000/float64(n), both[1].used.Seconds()*1000/float64(n)
	b.ReportMetric(without, "core-cpu-ms/op")
	b.ReportMetric(with-without, "recorder-cpu-ms/op")
	b.ReportMetric(100*(with-without)/without, "recorder-%-of-core")
	b.ReportMetric(float64(r.seg.size-size)/float64(n), "bytes/op")
	b.ReportMetric(float64(both[0].steps)/float64(n), "steps/op")
	if r.Close() != nil {
		b.Error("close")
	}
}

// BenchmarkState measures how the core's state at that load, with all evolving jobs adopted, is encoded and decoded.
func BenchmarkState(b *testing.B) {
	now := time.Unix(1.7e9, 0)
	s := begun(b, now)
	poll, _ := statetest.Crowd(now)
	s.give(b, now, msg.Books{})
	for len(s.core.View().Jobs) < 1000 {
		now = now.Add(time.Second)
		s.give(b, now, polled(poll, now))
	}
	data, err := s.core.Encode()
	must.OK(b, err)
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		b.Fatal(err)
	}
	measure := func(name string, work func() error) {
		b.Run(name, func(b *testing.B) {
			before, n := processorTime(b), 0
			for ; b.Loop(); n++ {
				must.OK(b, work())
			}
			b.ReportMetric((processorTime(b)-before).Seconds()*1000/float64(n), "cpu-ms/op")
			b.ReportMetric(float64(len(data)), "bytes")
			b.ReportMetric(float64(packed.Len()), "compressed-bytes")
		})
	}
	measure("encode", func() error {
		_, err := s.core.Encode()
		return err
	})
	measure("decode", func() error {
		_, err := core.Decode(data, "")
		return err
	})
}
