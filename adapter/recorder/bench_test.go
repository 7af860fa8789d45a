package recorder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/core"
	"github.com/evoslurm/evoslurm/adapter/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

type noX struct{ planner.Strategy }

func (noX) Pin([]planner.Placement) {}
func (noX) Rigid() bool             { return false }

// crowd is a poll of 1,000 nodes with 200 stock jobs that run, 10,000 that wait, and 1,000
// evolving jobs that wait.
func crowd(now time.Time) core.Observation {
	random := rand.New(rand.NewPCG(1, 2))
	o := core.Observation{Begun: now, Config: &slurmctl.Config{Version: "22.05.8", Values: map[string]string{"SlurmUser": "root(0)"}}, Commands: 3}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("n%d", i+1))
		o.Nodes = append(o.Nodes, slurmctl.Node{Name: names[i], State: "idle", CPUs: 4, Memory: 1000, Partitions: []string{"main"}})
	}
	o.Partitions = []slurmctl.Partition{{Name: "main", Up: true, Default: true, Nodes: names, MaxTime: slurmctl.Unlimited}}
	add := func(j slurmctl.Job) {
		j.ID = slurmctl.JobID(len(o.Jobs) + 1)
		j.Display, j.ArrayJobID = fmt.Sprint(j.ID), j.ID
		j.ArrayTasks, j.MinCPUs, j.Partition, j.User, j.UID, j.Exclusive, j.SubmitTime = 1, 1, "main", "user", 1000, true, now
		o.Jobs = append(o.Jobs, j)
	}
	for at := 0; len(o.Jobs) < 200; {
		size := 1 + random.IntN(8)
		if at+size > 950 {
			break
		}
		left := time.Duration(60+random.IntN(7200)) * time.Second
		add(slurmctl.Job{State: slurmctl.Running, NumNodes: size, NodeList: names[at : at+size], TimeLimit: 3 * time.Hour,
			StartTime: now.Add(left - 3*time.Hour), EndTime: now.Add(left)})
		at += size
	}
	for i := range 10_000 {
		add(slurmctl.Job{State: slurmctl.Pending, Reason: "Priority", Priority: uint64(1_000_000 - i), NumNodes: 1 + random.IntN(50), NumCPUs: 4,
			TimeLimit: time.Duration(1+random.IntN(60)) * time.Minute})
	}
	for i := range 1000 {
		var p planner.Profile
		for range 5 {
			p = append(p, planner.Step{Duration: int64(60 + random.IntN(1800)), Nodes: 1 + random.IntN(60)})
		}
		marker, _ := (request.Request{Profile: p, Drive: request.Companion}).Marker()
		add(slurmctl.Job{State: slurmctl.Pending, Reason: "BeginTime", Priority: uint64(999_500 - i), NumNodes: p[0].Nodes, Comment: marker,
			TimeLimit: time.Duration(p.Duration()/60+2) * time.Minute, StartTime: now.Add(3650 * 24 * time.Hour)})
	}
	return o
}

// BenchmarkCycle is a cycle of the core at that load, in which 1 % of the jobs have changed,
// and what the recorder takes of it: "recorder-%" is of the core's and the planning's time,
// to which polls and commands come in a sidecar.
func BenchmarkCycle(b *testing.B) {
	now := time.Unix(1.7e9, 0)
	none, err := planner.StrategyByName("noX")
	if err != nil {
		b.Fatal(err)
	}
	cfg := config.Default()
	site := core.Site{Root: true, User: "root"}
	c := core.New(site, cfg, core.Strategy{ExpandLimit: 1}, now)
	dir := b.TempDir()
	r := New(dir, 1024, "bench", Start{Begun: now, Site: site, Config: cfg})
	r.Warn = func(err error) { b.Error(err) }
	var core1, recorder time.Duration
	var steps int
	give := func(inputs ...core.Input) {
		for len(inputs) > 0 {
			t0 := time.Now()
			r.Inputs(now, inputs)
			t1 := time.Now()
			effects := c.Step(now, inputs...)
			t2 := time.Now()
			r.Effects(now, effects)
			t3 := time.Now()
			recorder += t1.Sub(t0) + t3.Sub(t2)
			steps++
			inputs = nil
			for _, e := range effects {
				switch e := e.(type) {
				case core.Plan:
					inputs = append(inputs, e.Problem.Plan(noX{none}))
				case core.Task:
					out := core.Outcome{Task: e.ID}
					switch e.Command.(type) {
					case core.ReadRequest:
						out.Result = core.Asked{User: &slurmctl.User{UID: 1000, Name: "user"}}
					case core.ReadLimits:
						out.Result = &slurmctl.Limits{}
					}
					inputs = append(inputs, out)
				}
			}
			core1 += t2.Sub(t1) + time.Since(t3)
		}
	}
	poll := crowd(now)
	give(core.Books{})
	for range 5 {
		now = now.Add(time.Second)
		l := poll
		l.Jobs, l.Begun = slices.Clone(poll.Jobs), now
		give(l)
	}
	r.flush(now)
	size := r.seg.size
	core1, recorder, steps = 0, 0, 0
	random := rand.New(rand.NewPCG(3, 4))
	n := 0
	for b.Loop() {
		now = now.Add(time.Second)
		for range len(poll.Jobs) / 100 {
			j := &poll.Jobs[random.IntN(len(poll.Jobs))]
			j.NumCPUs++
		}
		l := poll
		l.Jobs, l.Begun, l.Config = slices.Clone(poll.Jobs), now, nil
		give(l)
		n++
	}
	r.flush(now)
	b.ReportMetric(100*recorder.Seconds()/core1.Seconds(), "recorder-%")
	b.ReportMetric(float64(recorder.Microseconds())/float64(n), "recorder-µs/op")
	b.ReportMetric(float64(r.seg.size-size)/float64(n), "bytes/op")
	b.ReportMetric(float64(steps)/float64(n), "steps/op")
	if r.Close() != nil {
		b.Error("close")
	}
}
