package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// crowd is a sidecar's view of a busy cluster of 1,000 nodes: 200 stock jobs that run on 950 of
// them, 10,000 that wait, and 1,000 evolving jobs that wait.
func crowd(b *testing.B) (*Core, *snapshot) {
	b.Helper()
	const nodes, running, stock, evolving = 1000, 200, 10_000, 1000
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now().Truncate(time.Second)
	c := newCore(config.Default(), now)
	s := &snapshot{taken: now, byID: map[slurmctl.JobID]*slurmctl.Job{}, index: map[string]int{},
		partitions: map[string]slurmctl.Partition{}, reservations: map[string]slurmctl.Reservation{}, inUse: set{}}
	var names []string
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		s.nodes = append(s.nodes, slurmctl.Node{Name: name, State: "idle", CPUs: 4, Memory: 1000, Partitions: []string{"main"}})
		names, s.index[name] = append(names, name), i
	}
	s.partitions["main"] = slurmctl.Partition{Name: "main", Up: true, Default: true, MaxTime: slurmctl.Unlimited, Nodes: names}
	id := slurmctl.JobID(0)
	add := func(j slurmctl.Job) slurmctl.Job {
		id++
		j.ID, j.ArrayTasks, j.MinCPUs, j.Partition, j.User, j.UID, j.Exclusive = id, 1, 1, "main", "user", 1000, true
		s.jobs = append(s.jobs, j)
		return j
	}
	at := 0
	for range running {
		size := 1 + random.IntN(9)
		if at+size > 950 {
			break
		}
		left := time.Duration(60+random.IntN(7200)) * time.Second
		add(slurmctl.Job{State: slurmctl.Running, NumNodes: size, NodeList: names[at : at+size],
			TimeLimit: 3 * time.Hour, StartTime: now.Add(left - 3*time.Hour), EndTime: now.Add(left)})
		at += size
	}
	for i := range stock {
		add(slurmctl.Job{State: slurmctl.Pending, Reason: "Priority", Priority: uint64(1_000_000 - i),
			NumNodes: 1 + random.IntN(50), NumCPUs: 4, TimeLimit: time.Duration(1+random.IntN(60)) * time.Minute})
	}
	for i := range evolving {
		var p planner.Profile
		for range 5 {
			p = append(p, planner.Step{Duration: int64(60 + random.IntN(1800)), Nodes: 1 + random.IntN(60)})
		}
		record := add(slurmctl.Job{State: slurmctl.Pending, Reason: "BeginTime", Priority: uint64(999_500 - i),
			NumNodes: p[0].Nodes, TimeLimit: time.Duration(p.Duration()/60+2) * time.Minute, StartTime: now.Add(parked)})
		values := &row.Job{ID: int64(record.ID), SlurmID: uint32(record.ID), User: "user", UID: 1000, Drive: "merge", State: row.Queued, Profile: p, Submitted: now}
		j := &job{Job: values, record: record, asked: &slurmctl.JobRequest{}}
		c.add(j)
	}
	for i := range s.jobs {
		j := &s.jobs[i]
		s.byID[j.ID] = j
		for _, n := range j.NodeList {
			s.inUse[n] = true
		}
	}
	return c, s
}

// BenchmarkPlan measures the planning of one cycle, a second after the cycle before, whose plans are in
// place. In late, jobs have not started on time, so everything is planned again. In still, nothing
// happened. In end, one stock job ended early, or is back.
func BenchmarkPlan(b *testing.B) {
	for name, happens := range map[string]func(*snapshot, int){
		"late":  nil,
		"still": func(*snapshot, int) {},
		"end": func(s *snapshot, i int) {
			s.jobs[0].State = []slurmctl.JobState{slurmctl.Running, slurmctl.Completing}[i%2]
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, s := crowd(b)
			begun := s.taken
			if happens != nil { // nobody can start yet
				for i, n := range s.nodes {
					if !s.inUse[n.Name] {
						s.jobs[i%190].NodeList = append(slices.Clip(s.jobs[i%190].NodeList), n.Name)
					}
				}
			}
			for range 5 { // until preferred nodes are those of the plan
				planNow(c, s)
			}
			c.savePlans()
			c.effects = nil
			for i := 0; b.Loop(); i++ {
				if s.taken = s.taken.Add(time.Second); happens != nil {
					happens(s, i)
					s.taken = begun.Add(s.taken.Sub(begun) % (50 * time.Second)) // before anybody else ends
				}
				planNow(c, s)
			}
		})
	}
}

// BenchmarkCandidates is the part of it that finds out who is planned where.
func BenchmarkCandidates(b *testing.B) {
	c, s := crowd(b)
	for b.Loop() {
		c.candidates(s, s.taken.Unix())
	}
}

// BenchmarkView makes what the API shows.
func BenchmarkView(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	c.snapshot = s
	for b.Loop() {
		c.View()
	}
}

// BenchmarkFollow is finding out what became of the known jobs.
func BenchmarkFollow(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	for b.Loop() {
		c.follow(s)
		c.followPlans(s)
		c.adopt(s)
		c.effects = nil
	}
}

// BenchmarkDelays is finding out which stock jobs are held up, of 10,000 that wait, while 50 nodes are
// idle and held for growths: always has something happen in every cycle, still nothing.
func BenchmarkDelays(b *testing.B) {
	for _, always := range []bool{true, false} {
		b.Run(map[bool]string{true: "always", false: "still"}[always], func(b *testing.B) {
			c, s := crowd(b)
			c.cfg.MaxDelay = 100 * time.Hour
			begun := 0
			for _, j := range slices.Clone(c.active[:10]) { // each has a node, and five that are promised
				node, more := s.nodes[950+begun].Name, []string{}
				for k := range 4 {
					more = append(more, s.nodes[960+4*begun+k].Name)
				}
				now := s.taken.Unix()
				j.Profile = planner.Profile{{Duration: 7200, Nodes: 1}, {Duration: 7200, Nodes: 5}}
				j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, s.taken, s.taken
				j.record.State, j.record.NodeList, j.record.TimeLimit = slurmctl.Running, []string{node}, 5*time.Hour
				j.record.EndTime = s.taken.Add(j.record.TimeLimit)
				*s.byID[j.id()] = j.record
				s.inUse[node] = true
				j.held = []Part{{ID: j.id(), Step: 1, Nodes: []string{node}}}
				j.plan = []plannedStep{{start: now, end: now + 7200, nodes: []string{node}}, {start: now + 7200, end: now + 14400, nodes: append(more, node)}}
				begun++
				c.setHold(slurmctl.Reservation{Name: ownName{j.id(), 2, 1}.String(), Start: time.Unix(now+7200, 0), End: time.Unix(now+14400, 0), Nodes: more, Flags: holdFlags})
			}
			for i := range s.jobs {
				s.jobs[i].TimeLimit = max(s.jobs[i].TimeLimit, 3*time.Hour)
			}
			for i := 0; b.Loop(); i++ {
				if always {
					s.jobs[0].Priority = uint64(i)
				}
				c.watchDelays(s)
				c.effects = nil
			}
			if len(c.delays.jobs) == 0 {
				b.Fatal("nobody is held up")
			}
		})
	}
}

// BenchmarkDryRun plans a change of a queued job, with the plans of the last cycle in place.
func BenchmarkDryRun(b *testing.B) {
	c, s := crowd(b)
	for range 5 {
		planNow(c, s)
	}
	c.snapshot = s
	j := c.active[len(c.active)/2]
	j.record.Comment, _ = request.Request{Profile: j.Profile, Drive: drivemode.Companion}.Marker()
	req := &api.ChangeRequest{ID: "1", DryRun: true, Update: &api.Update{Profile: "10@10m,20@20m"}}
	for b.Loop() {
		t, err := c.target(j, req)
		if err != nil {
			b.Fatal(err)
		}
		if tried := c.tryChange(s, j, t); tried.refused != "" || len(tried.plan) == 0 {
			b.Fatalf("%q, planned %v", tried.refused, tried.plan)
		}
	}
}

// BenchmarkGrow plans the growth of a running job by as many of up to 900 nodes as it can have, for an hour.
func BenchmarkGrow(b *testing.B) {
	c, s := crowd(b)
	j := c.active[0]
	j.Profile = planner.Profile{{Duration: 3600, Nodes: 10}, {Duration: 3600, Nodes: 5}}
	j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, s.taken, s.taken
	j.held = []Part{{ID: j.id(), Step: 1, Nodes: nodeNames(951, 960)}}
	j.record.State, j.record.TimeLimit, j.record.StartTime, j.record.EndTime = slurmctl.Running, 24*time.Hour, s.taken, s.taken.Add(24*time.Hour)
	j.record.Comment, _ = request.Request{Profile: j.Profile, Drive: drivemode.Companion}.Marker()
	c.refit(s, j, s.taken.Unix(), "")
	for range 5 {
		planNow(c, s)
	}
	c.snapshot = s
	req := &api.ChangeRequest{ID: "1", DryRun: true, Grow: &api.Grow{Nodes: 900, Min: 1, For: 3600}}
	for b.Loop() {
		t, err := c.target(j, req)
		if err != nil {
			b.Fatal(err)
		}
		c.tryChange(s, j, t)
	}
}

// BenchmarkCopied makes the copy on which a change is planned: all that it costs the loop.
func BenchmarkCopied(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	c.snapshot = s
	for b.Loop() {
		c.copied()
	}
}
