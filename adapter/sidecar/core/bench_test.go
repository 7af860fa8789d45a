package core

import (
	"fmt"
	rand "math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/delay"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// crowd is a sidecar's view of statetest.Crowd, with its evolving jobs adopted.
func crowd(b *testing.B) (*state.Core, *state.Snapshot) {
	b.Helper()
	return crowdOf(b, 10_000, 1000)
}

// crowdOf has only the first waiting stock jobs and evolving jobs of the crowd.
func crowdOf(b *testing.B, stock, evolving int) (*state.Core, *state.Snapshot) {
	b.Helper()
	now := time.Now().Truncate(time.Second)
	o, profiles := statetest.Crowd(now)
	first := len(o.Jobs) - len(profiles)
	o.Jobs = slices.Delete(o.Jobs[:first+evolving], first-10_000+stock, first)
	profiles = profiles[:evolving]
	c := statetest.NewCore(config.Default(), now)
	s := &state.Snapshot{Taken: now, Jobs: o.Jobs, Nodes: o.Nodes, ByID: map[slurmctl.JobID]*slurmctl.Job{}, Index: map[string]int{},
		Partitions: map[string]slurmctl.Partition{"main": o.Partitions[0]}, Reservations: map[string]slurmctl.Reservation{}, InUse: msg.Set{}}
	for i, n := range s.Nodes {
		s.Index[n.Name] = i
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		s.ByID[j.ID] = j
		for _, n := range j.NodeList {
			s.InUse[n] = true
		}
	}
	for i, p := range profiles {
		record := s.Jobs[len(s.Jobs)-len(profiles)+i]
		record.Comment = "" // a poll reads the marker, not the core
		*s.ByID[record.ID] = record
		values := &row.Job{Owned: row.Owned{ID: int64(record.ID), SlurmID: uint32(record.ID), User: "user", UID: 1000, Submitted: now}, Terms: row.Terms{Drive: "merge", Profile: p}, Life: row.Life{State: row.Queued}}
		adopt.Add(c, &state.Job{Job: values, Sight: state.Sight{Record: record}, Adopted: state.Adopted{Asked: &slurmctl.JobRequest{}}})
	}
	return c, s
}

// BenchmarkPlan measures the planning of one cycle, a second after the cycle before, whose plans are in
// place. In late, jobs have not started on time, so everything is planned again. In still, nothing
// happened. In end, one stock job ended early, or is back.
func BenchmarkPlan(b *testing.B) {
	for name, happens := range map[string]func(*state.Snapshot, int){
		"late":  nil,
		"still": func(*state.Snapshot, int) {},
		"end": func(s *state.Snapshot, i int) {
			s.Jobs[0].State = []slurmctl.JobState{slurmctl.Running, slurmctl.Completing}[i%2]
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, s := crowd(b)
			begun := s.Taken
			if happens != nil { // nobody can start yet
				for i, n := range s.Nodes {
					if !s.InUse[n.Name] {
						s.Jobs[i%190].NodeList = append(slices.Clip(s.Jobs[i%190].NodeList), n.Name)
					}
				}
			}
			for range 5 { // until preferred nodes are those of the plan
				planNow(c, s)
			}
			c.SavePlans()
			c.Effects = nil
			before := processorTime()
			for i := 0; b.Loop(); i++ {
				if s.Taken = s.Taken.Add(time.Second); happens != nil {
					happens(s, i)
					s.Taken = begun.Add(s.Taken.Sub(begun) % (50 * time.Second)) // before anybody else ends
				}
				planNow(c, s)
			}
			b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkCandidates is the part of it that finds out who is planned where.
func BenchmarkCandidates(b *testing.B) {
	c, s := crowd(b)
	for b.Loop() {
		plan.Candidates(c, s, s.Taken.Unix())
	}
}

// BenchmarkView makes what the API shows.
func BenchmarkView(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	c.Snapshot = s
	for b.Loop() {
		view.ViewOf(c)
	}
}

// BenchmarkFollow is finding out what became of the known jobs.
func BenchmarkFollow(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	for b.Loop() {
		follow.Follow(c, s)
		refit.FollowPlans(c, s)
		adopt.Adopt(c, s)
		c.Effects = nil
	}
}

// BenchmarkDelays is finding out which stock jobs are held up, of 10,000 that wait, while 50 nodes are
// idle and held for growths: always has something happen in every cycle, still nothing. Measured plans the waiting jobs
// with and without holds, as once a minute. Poll is all of this and the planning, with 500 waiting stock jobs of 20 users
// and 100 evolving ones.
func BenchmarkDelays(b *testing.B) {
	for _, name := range []string{"always", "still", "measured", "poll"} {
		b.Run(name, func(b *testing.B) {
			c, s := crowd(b)
			if name == "poll" {
				c, s = crowdOf(b, 500, 110)
				for i := range s.Jobs {
					s.Jobs[i].UID = uint32(i % 20)
				}
			}
			c.Config.MaxDelay = 100 * time.Hour
			begun := 0
			for _, j := range slices.Clone(c.Active[:10]) { // each has a node, and five that are promised
				node, more := s.Nodes[950+begun].Name, []string{}
				for k := range 4 {
					more = append(more, s.Nodes[960+4*begun+k].Name)
				}
				now := s.Taken.Unix()
				j.Profile = planner.Profile{{Duration: 7200, Nodes: 1}, {Duration: 7200, Nodes: 5}}
				j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, s.Taken, s.Taken
				j.Record.State, j.Record.NodeList, j.Record.TimeLimit = slurmctl.Running, []string{node}, 5*time.Hour
				j.Record.EndTime = s.Taken.Add(j.Record.TimeLimit)
				*s.ByID[j.BaseID()] = j.Record
				s.InUse[node] = true
				j.Held = []msg.Part{{ID: j.BaseID(), Step: 1, Nodes: []string{node}}}
				j.Plan = []msg.PlannedStep{{Start: now, End: now + 7200, Nodes: []string{node}}, {Start: now + 7200, End: now + 14400, Nodes: append(more, node)}}
				begun++
				hold.SetHold(c, slurmctl.Reservation{Name: state.OwnName{j.BaseID(), 2, 1}.String(), Start: time.Unix(now+7200, 0), End: time.Unix(now+14400, 0), Nodes: more, Flags: msg.HoldFlags})
			}
			for i := range s.Jobs {
				s.Jobs[i].TimeLimit = max(s.Jobs[i].TimeLimit, 3*time.Hour)
			}
			before := processorTime()
			for i := 0; b.Loop(); i++ {
				switch name {
				case "poll":
					s.Jobs[0].Priority = uint64(i)
					pollOnce(c, s)
				case "measured":
					c.Delays.Measured = time.Time{}
					delay.Measure(c, s)
				case "always":
					s.Jobs[0].Priority = uint64(i)
					fallthrough
				default:
					delay.Watch(c, s)
				}
				c.Effects = nil
			}
			b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			if len(c.Delays.Jobs)+len(c.Delays.Late) == 0 {
				b.Fatal("nobody is held up")
			}
		})
	}
}

func pollOnce(c *state.Core, s *state.Snapshot) {
	s.Taken = s.Taken.Add(time.Second)
	delay.Watch(c, s)
	hold.Price(c, s)
	c.Delays.Measured = time.Time{}
	delay.Measure(c, s)
	planNow(c, s)
}

// BenchmarkDryRun plans a change of a queued job, with the plans of the last cycle in place.
func BenchmarkDryRun(b *testing.B) {
	c, s := crowd(b)
	for range 5 {
		planNow(c, s)
	}
	c.Snapshot = s
	j := c.Active[len(c.Active)/2]
	j.Record.Comment, _ = request.Request{Profile: j.Profile, Drive: drivemode.Companion}.Marker()
	req := &api.ChangeRequest{ID: "1", DryRun: true, Update: &api.Update{Profile: "10@10m,20@20m"}}
	for b.Loop() {
		t, err := change.Target(c, j, req)
		must.OK(b, err)
		if tried := change.TryChange(c, s, j, t); tried.Refused != "" || len(tried.Plan) == 0 {
			b.Fatalf("%q, planned %v", tried.Refused, tried.Plan)
		}
	}
}

// BenchmarkGrow plans the growth of a running job by as many of up to 900 nodes as it can have, for an hour.
func BenchmarkGrow(b *testing.B) {
	c, s := crowd(b)
	j := c.Active[0]
	j.Profile = planner.Profile{{Duration: 3600, Nodes: 10}, {Duration: 3600, Nodes: 5}}
	j.State, j.Step, j.Started, j.StepStarted = row.Running, 1, s.Taken, s.Taken
	j.Held = []msg.Part{{ID: j.BaseID(), Step: 1, Nodes: statetest.Names(951, 960)}}
	j.Record.State, j.Record.TimeLimit, j.Record.StartTime, j.Record.EndTime = slurmctl.Running, 24*time.Hour, s.Taken, s.Taken.Add(24*time.Hour)
	j.Record.Comment, _ = request.Request{Profile: j.Profile, Drive: drivemode.Companion}.Marker()
	refit.Refit(c, s, j, s.Taken.Unix(), "")
	for range 5 {
		planNow(c, s)
	}
	c.Snapshot = s
	req := &api.ChangeRequest{ID: "1", DryRun: true, Grow: &api.Grow{Nodes: 900, Min: 1, For: 3600}}
	for b.Loop() {
		t, err := change.Target(c, j, req)
		must.OK(b, err)
		change.TryChange(c, s, j, t)
	}
}

// BenchmarkCopied makes the copy on which a change is planned: all that it costs the loop.
func BenchmarkCopied(b *testing.B) {
	c, s := crowd(b)
	planNow(c, s)
	c.Snapshot = s
	for b.Loop() {
		change.CopyAll(c)
	}
}

// BenchmarkLongProfiles plans 12 jobs of one user, of 1,999 random steps each, on 64 nodes, with nothing kept of the
// cycle before. cpu-ms/op counts all threads.
func BenchmarkLongProfiles(b *testing.B) {
	for _, most := range []int{2, 16, 40} {
		for _, expand := range []planner.ExpandLimit{1, 2} {
			b.Run(fmt.Sprintf("nodes=%d/expand=%v", most, expand), func(b *testing.B) {
				k, random := statetest.New(b, 64), rand.New(rand.NewPCG(1, 2))
				for i := range 12 {
					j := k.Evolving(10+i, uint64(5000-i), "1@5m", 60*time.Hour)
					for len(j.Profile) < 1999 {
						j.Profile = append(j.Profile, planner.Step{Duration: int64(1 + random.IntN(60)), Nodes: 1 + random.IntN(most)})
					}
					j.ExpandLimit = expand
				}
				planNow(k.Core, k.Seen)
				before := processorTime()
				for b.Loop() {
					k.Last, k.Made = nil, nil
					planNow(k.Core, k.Seen)
					k.Effects = nil
				}
				b.ReportMetric(float64((processorTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
