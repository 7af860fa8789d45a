package controller_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

func (l *lab) scontrol(args ...string) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", args...)
	l.must(err)
}

// inState waits until the sidecar shows the job so.
func (l *lab) inState(id uint32, state string) api.Job {
	l.t.Helper()
	var job api.Job
	l.eventually(fmt.Sprintf("job %d %s", id, state), func() (err error) {
		if job, err = l.Job(context.Background(), id); err == nil && job.State != state {
			err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
		}
		return err
	})
	return job
}

// TestSuspended checks that a suspended job is neither late nor grown nor warned, and that its
// steps and end move by the duration of the suspension.
func TestSuspended(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
		c.Grace, c.OverrunSignal, c.Overrun = 2*time.Second, "USR1", "cancel"
	})
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			id := l.submitSpec(request.Request{Drive: drive}, "1@1s,2@12s,4@30s")
			l.running(id, 1)
			a := l.next(id, 1)
			l.has(a, 2)
			part := a.Parts[len(a.Parts)-1].Job // the companion, if there is one
			before := l.running(id, 2)
			l.scontrol("suspend", strconv.Itoa(int(part)))
			began := time.Now()
			job := l.inState(id, "suspended")
			if !strings.Contains(job.Reason, "suspended") {
				t.Errorf("its reason is %q", job.Reason)
			}
			for time.Since(began) < 16*time.Second { // its step would be over for long
				job = l.inState(id, "suspended")
				if job.Nodes != 2 || job.Step != 2 {
					t.Fatalf("while suspended it is in step %d with %d nodes", job.Step, job.Nodes)
				}
				time.Sleep(time.Second)
			}
			if drive == drivemode.Companion { // a sidecar that was away meanwhile
				l.stop()
				time.Sleep(3 * time.Second)
				l.start()
			}
			l.scontrol("resume", strconv.Itoa(int(part)))
			lasted := time.Since(began)
			job = l.inState(id, "running")
			l.eventually("its growth put off", func() (err error) {
				if job, err = l.Job(l.ctx(), id); err != nil {
					return err
				}
				if off := job.Plan[2].Start.Sub(before.Plan[2].Start); off < lasted-4*time.Second || off > lasted+15*time.Second {
					err = fmt.Errorf("by %v after %v of suspension", off, lasted)
				}
				return err
			})
			l.has(l.next(id, 2), 4)
			events, err := l.store.Events(l.ctx(), 0, 0, 10000)
			l.must(err)
			for _, e := range events {
				if e.Kind == "overrun" || e.Kind == "enforced" {
					t.Errorf("%s: %s", e.Kind, e.Detail)
				}
			}
			l.cancel(id)
			l.ended(id)
		})
	}
	l.run("waiting", func(l *lab) {
		rival := l.sbatch(1, "--nodes=7", "--exclusive", "--time=1", "--wrap=sleep 14")
		id := l.submit("1@5s,3@10s")
		l.eventually("the stock job runs", func() error {
			if l.slurmNodes(rival) == 0 {
				return fmt.Errorf("it does not")
			}
			return nil
		})
		l.running(id, 1)
		l.scontrol("suspend", strconv.Itoa(int(id)))
		l.inState(id, "suspended")
		ctx, cancel := context.WithTimeout(l.ctx(), 8*time.Second)
		defer cancel()
		if a, err := l.Next(ctx, id, api.NextRequest{From: 1}); err != nil || a.Ready {
			t.Errorf("a suspended job has got its nodes: %+v %v", a, err)
		}
		if n := l.slurmNodes(id); n > 1 {
			t.Errorf("a suspended job has %d nodes", n)
		}
		l.scontrol("resume", strconv.Itoa(int(id)))
		l.has(l.next(id, 1), 3)
		l.cancel(id)
		l.ended(id)
	})
}

// TestLimitsOfAllParts checks that if the sidecar or an administrator gives the base job a longer
// time limit, its companions get it too, within the partition's limit.
func TestLimitsOfAllParts(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, Partitions: []slurmtest.Partition{{Name: "main", Default: true, MaxTime: "20"}}},
		func(c *config.Config) { c.Drive = drivemode.Companion })
	ends := func(a api.Allocation) (shortest time.Duration) {
		t.Helper()
		for i, p := range a.Parts {
			j, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(p.Job))
			l.must(err)
			if left := time.Until(j[0].EndTime); i == 0 || left < shortest {
				shortest = left
			}
		}
		return shortest
	}
	l.run("an administrator's", func(l *lab) {
		id := l.submit("1@1s,3@4m")
		l.running(id, 1)
		a := l.next(id, 1)
		l.has(a, 3)
		l.scontrol("update", fmt.Sprintf("JobId=%d", id), "TimeLimit=15")
		l.eventually("all parts end later", func() error {
			if left := ends(a); left < 13*time.Minute {
				return fmt.Errorf("one ends in %v", left)
			}
			return nil
		})
		l.cancel(id)
		l.ended(id)
	})
	l.run("the sidecar's, within MaxTime", func(l *lab) {
		id := l.submit("1@1s,3@2m,8@17m", "--time=20")
		l.running(id, 1)
		a := l.next(id, 1)
		l.has(a, 3)
		// an administrator takes nodes of its growth away for a while: its plan ends later
		l.scontrol("create", "reservation", "ReservationName=outage", "StartTime=now", "Duration=6", "Nodes=n[5-8]", "Users=root", "Flags=IGNORE_JOBS,OVERLAP,MAINT")
		l.eventually("told that its plan does not fit into its limit", func() error {
			job, err := l.Job(l.ctx(), id)
			if err == nil && !strings.Contains(job.Reason, "MaxTime of partition main") {
				err = fmt.Errorf("its reason is %q, its plan ends %v", job.Reason, job.End)
			}
			return err
		})
		if left := ends(a); left > 20*time.Minute || left < 18*time.Minute {
			t.Errorf("one of its parts ends in %v; want all at MaxTime and none later", left)
		}
		l.scontrol("delete", "ReservationName=outage")
		l.cancel(id)
		l.ended(id)
	})
}
