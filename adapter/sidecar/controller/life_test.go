package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestApart runs the sidecar on a host whose clock differs from slurmctld's.
func TestApart(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{2 * time.Minute, -2 * time.Minute} {
		l := newLab(t, slurmtest.Options{OwnClock: true})
		leads := func(by time.Duration) {
			l.eventually("slurmctld's clock is seen", func() error {
				s, err := l.Status(l.ctx())
				if lead := time.Duration(s.ClockLead) * time.Second; err != nil || (lead-by).Abs() > 5*time.Second || (lead == 0) != (by == 0) {
					return fmt.Errorf("%v ahead, not %v (%v)", lead, by, err)
				}
				return nil
			})
		}
		l.stop()
		l.must(l.cluster.StepClock(by))
		l.must(l.cluster.RestartController(l.ctx()))
		l.start()
		id := l.submit("2@40s,5@5s")
		l.running(id, 1)
		l.stop()
		l.start()
		job := l.running(id, 1)
		records, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
		l.must(err)
		if off := job.Start.Sub(records[0].StartTime); off.Abs() > 5*time.Second {
			t.Errorf("the job began at %v, not %v", records[0].StartTime, job.Start)
		}
		leads(by)
		l.has(l.next(id, 1), 5)
		l.end(id)
		l.must(l.cluster.StepClock(-by))
		l.must(l.cluster.RestartController(l.ctx()))
		leads(0)
		l.clean()
	}
}

// TestRestart stops the sidecar in every phase of a job's life and starts it
// again, for both ways to grow.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		t.Run(string(drive), func(t *testing.T) {
			l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
			again := func(l *lab, away time.Duration) {
				l.stop()
				time.Sleep(away)
				l.start()
			}
			submit := func(l *lab, profile string) uint32 { return l.submitSpec(request.Request{Drive: drive}, profile) }
			l.run("parked while it is away", func(l *lab) {
				l.stop()
				id := submit(l, "1@5s,3@5s")
				time.Sleep(2 * time.Second)
				if n := l.slurmNodes(id); n != 0 {
					l.t.Fatalf("the job runs on %d nodes without a sidecar", n)
				}
				l.start()
				l.running(id, 1)
				l.has(l.next(id, 1), 3)
				l.end(id)
				if drive == drivemode.Merge {
					l.eventually("the ledger has its growth", func() error { return l.booked(id, 2, 3) })
				}
			})
			l.run("queued behind others", func(l *lab) {
				first := submit(l, "8@5s")
				l.running(first, 1)
				id := submit(l, "2@5s,6@5s")
				l.planned(id)
				again(l, 0)
				l.cancel(first)
				l.running(id, 1)
				again(l, 0)
				l.has(l.next(id, 1), 6)
				l.end(id)
			})
			l.run("started while it is away", func(l *lab) {
				id := submit(l, "2@10s,6@10s")
				l.eventually("the job is let go", func() error {
					if job, err := l.Job(context.Background(), id); err != nil || job.State == "queued" {
						return fmt.Errorf("queued (%v)", err)
					}
					return nil
				})
				again(l, 3*time.Second)
				l.running(id, 1)
				l.has(l.next(id, 1), 6)
				again(l, 0)
				if a, err := l.Allocation(l.ctx(), id); err == nil && a.Nodes != 6 {
					l.t.Errorf("%d nodes after the restart, want 6", a.Nodes)
				}
				l.end(id)
			})
			l.run("in the growth", func(l *lab) {
				id := submit(l, "2@20s,6@20s,1@5s")
				l.running(id, 1)
				short, cancel := context.WithTimeout(l.ctx(), 100*time.Millisecond)
				defer cancel()
				if _, err := l.Next(short, id, api.NextRequest{From: 1}); err != nil {
					l.t.Fatal(err)
				}
				again(l, time.Second)
				l.eventually("the job is known again", func() error { _, err := l.Job(context.Background(), id); return err })
				l.has(l.next(id, 1), 6)
				short2, cancel2 := context.WithTimeout(l.ctx(), 20*time.Millisecond)
				defer cancel2()
				if _, err := l.Next(short2, id, api.NextRequest{From: 2}); err != nil {
					l.t.Fatal(err)
				}
				again(l, 0)
				l.eventually("the job is known again", func() error { _, err := l.Job(context.Background(), id); return err })
				l.has(l.next(id, 2), 1)
				l.end(id)
			})
			l.run("ended while it is away", func(l *lab) {
				id := submit(l, "1@10s,4@10s")
				l.running(id, 1)
				l.has(l.next(id, 1), 4)
				l.stop()
				l.cancel(id)
				time.Sleep(time.Second)
				l.start()
			})
		})
	}
}

// booked returns what is wrong with the rows of a job that had grown and has ended.
func (l *lab) booked(id uint32, step, nodes int) error {
	ctx := context.Background()
	jobs, err := l.store.EndedJobs(ctx, 1000)
	i := slices.IndexFunc(jobs, func(j *store.Job) bool { return j.SlurmID == id })
	if err != nil || i < 0 {
		return fmt.Errorf("job %d is not among %d that have ended: %v", id, len(jobs), err)
	}
	holds, err1 := l.store.Holds(ctx, jobs[i].ID)
	promises, err2 := l.store.Promises(ctx, jobs[i].ID)
	report, err3 := l.Report(ctx, api.ReportQuery{Start: jobs[i].Submitted, End: time.Now().Add(time.Minute), By: "user"})
	kept := slices.ContainsFunc(holds, func(h row.Hold) bool {
		return h.Step == step && h.Cause == row.CauseKept && h.Held > 0 && !h.Begun.IsZero() && !h.Ended.Before(h.Begun)
	})
	open := slices.ContainsFunc(holds, func(h row.Hold) bool { return h.Ended.IsZero() })
	if err := errors.Join(err1, err2, err3); err != nil || !kept || open || len(promises) != 1 || promises[0].Got != nodes || report.Total.Promises.Made == 0 || report.Total.Allocated == 0 || len(report.Rows) == 0 {
		return fmt.Errorf("holds %+v, promises %+v, report %+v: %v", holds, promises, report, err)
	}
	return nil
}

// TestPools checks that partitions with shared nodes, features, and node lists narrow where a job
// may run, and that no node is promised twice.
func TestPools(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{
		Partitions: []slurmtest.Partition{{Name: "left", Nodes: "n[1-5]", Default: true}, {Name: "right", Nodes: "n[4-8]"}},
		NodeExtra:  map[string]string{"n[7-8]": "Feature=big"},
	}, func(c *config.Config) { c.HoldAhead = time.Hour })
	inside := func(l *lab, a api.Allocation, allowed ...string) {
		l.t.Helper()
		in := map[string]bool{}
		for _, n := range allowed {
			in[n] = true
		}
		for _, p := range a.Parts {
			for _, n := range p.NodeList {
				if !in[n] {
					l.t.Errorf("job %d has node %s, may have %v only", a.Job, n, allowed)
				}
			}
		}
	}
	l.run("shared nodes are promised once", func(l *lab) {
		first := l.submit("3@8s,5@30s")
		second := l.submit("3@8s,5@30s", "--partition=right")
		a := l.running(first, 1)
		// 5 and 5 of 8 nodes do not go together: the second begins after the first
		if job, err := l.Job(context.Background(), second); err != nil || job.State != "queued" {
			l.t.Errorf("the second job is %s (%v), want queued until %v", job.State, err, a.End)
		}
		b := l.next(first, 1)
		l.has(b, 5)
		inside(l, b, "n1", "n2", "n3", "n4", "n5")
		l.cancel(first)
		l.running(second, 1)
		b = l.next(second, 1)
		l.has(b, 5)
		inside(l, b, "n4", "n5", "n6", "n7", "n8")
		l.end(second)
	})
	l.run("disjoint needs run side by side", func(l *lab) {
		first, second := l.submit("2@8s,3@30s"), l.submit("2@8s,3@30s", "--partition=right", "--exclude=n4,n5")
		l.running(first, 1)
		l.running(second, 1)
		b := l.next(second, 1)
		l.has(b, 3)
		inside(l, b, "n6", "n7", "n8")
		l.has(l.next(first, 1), 3)
		l.cancel(first)
		l.end(second)
	})
	l.run("a constraint", func(l *lab) {
		id := l.submit("1@5s,2@30s", "--partition=right", "--constraint=big")
		l.running(id, 1)
		b := l.next(id, 1)
		l.has(b, 2)
		inside(l, b, "n7", "n8")
		l.end(id)
	})
	l.run("a list of nodes", func(l *lab) {
		id := l.submitSpec(request.Request{Nodes: "n[2,4-5]"}, "1@5s,3@30s")
		l.running(id, 1)
		b := l.next(id, 1)
		l.has(b, 3)
		inside(l, b, "n2", "n4", "n5")
		l.end(id)
	})
	l.run("a node shared by others is busy until they end", func(l *lab) {
		stock := l.sbatch(1, "--ntasks=1", "--nodelist=n1", "--time=30")
		l.onNodes(stock, 1)
		id := l.submit("1@5s,4@30s")
		l.running(id, 1)
		b := l.next(id, 1)
		l.has(b, 4)
		inside(l, b, "n2", "n3", "n4", "n5")
		l.cancelStock(1, stock)
		l.end(id)
	})
}

// TestCallsPerCycle: how often Slurm is asked does not grow with the queue.
func TestCallsPerCycle(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{})
	blocker := l.sbatch(1, "--nodes=8", "--exclusive", "--time=60")
	var ids []uint32
	for range 30 {
		ids = append(ids, l.submit("1@10m,4@10m"))
	}
	time.Sleep(8 * time.Second) // all planned starts are written into Slurm by then
	l.eventually("a quiet cycle", func() error {
		s, err := l.Status(context.Background())
		if err != nil || s.SlurmCalls != 3 {
			return fmt.Errorf("%d calls in a cycle (%v), want 3", s.SlurmCalls, err)
		}
		if jobs, _ := l.Jobs(context.Background(), false); len(jobs) != len(ids) {
			return fmt.Errorf("%d jobs known, want %d", len(jobs), len(ids))
		}
		return nil
	})
	l.cancelStock(1, blocker)
	for _, id := range ids {
		l.cancel(id)
	}
	l.clean()
}

// TestSlowHost checks that on a host where every command needs about 20 ms more, Slurm is polled as
// often as elsewhere. After ten polls, the sidecar would have spaced them if it mistook the host's
// time for slurmctld's.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{})
	l.stop()
	l.slurm.Dir = l.slowHost()
	l.start()
	var last time.Time
	spaced := 0
	end := time.Now().Add(4 * time.Minute)
	for polls := 0; polls < 20; {
		s, err := l.Status(context.Background())
		l.must(err)
		if time.Now().After(end) {
			t.Fatalf("%d of 20 polls in four minutes", polls)
		}
		if s.LastCycle.Equal(last) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		last = s.LastCycle
		if polls++; s.PollPause > l.cfg.PollInterval.Seconds() {
			spaced++
		}
	}
	if spaced > 0 {
		t.Errorf("after %d of 20 polls the pause was longer than poll_interval", spaced)
	}
}

// TestWithoutSidecar checks that plans are in Slurm, which keeps them when the sidecar is gone.
func TestWithoutSidecar(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{})
	l.run("a planned start", func(l *lab) {
		blocker := l.sbatch(1, "--nodes=8", "--exclusive", "--time=5")
		l.onNodes(blocker, 8)
		l.scontrol("update", "JobId="+strconv.Itoa(int(blocker)), "EndTime=now+15seconds")
		id := l.submit("2@30s,4@30s")
		var planned time.Time
		l.eventually("the plan is in Slurm", func() error {
			job, err := l.Job(context.Background(), id)
			if err != nil || len(job.Plan) == 0 {
				return fmt.Errorf("no plan (%v)", err)
			}
			planned = job.Plan[0].Start
			r, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
			if err != nil || len(r) != 1 || r[0].Reservation == "" || r[0].StartTime.Sub(planned).Abs() > 20*time.Second {
				return fmt.Errorf("Slurm has %+v (%v), planned %v", r, err, planned)
			}
			return nil
		})
		l.stop()
		l.onNodes(id, 2)
		l.start()
		l.running(id, 1)
		l.has(l.next(id, 1), 4)
		l.end(id)
	})
	l.run("a chain", func(l *lab) {
		ids := l.submitChain("1@8s,3@8s", "", "sleep 8", "exec sleep 600")
		l.running(ids[0], 1)
		l.eventually("the coming step is in Slurm", func() error {
			r, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(ids[1]))
			if err != nil || len(r) != 1 || r[0].Reservation == "" || time.Until(r[0].StartTime) > time.Minute {
				return fmt.Errorf("Slurm has %+v (%v)", r, err)
			}
			return nil
		})
		l.stop()
		l.eventually("Slurm starts the second step", func() error {
			if n := l.slurmNodes(ids[1]); n != 3 {
				return fmt.Errorf("%d nodes", n)
			}
			return nil
		})
		l.start()
		l.running(ids[0], 2)
		l.cancel(ids[1])
		l.ended(ids[0])
	})
}
