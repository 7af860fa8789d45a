package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// changes asks for a change of a job, with an id of its own if it has none.
func (l *lab) changes(id uint32, req api.ChangeRequest) api.Change {
	l.t.Helper()
	if req.ID == "" {
		req.ID = fmt.Sprintf("%x", time.Now().UnixNano())
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		a, err := l.Change(ctx, id, req)
		cancel()
		if err != nil {
			l.t.Fatalf("change of job %d: %v", id, err)
		}
		if a.Ready {
			return a
		}
	}
}

// accepted makes a change that must be accepted.
func (l *lab) accepted(id uint32, req api.ChangeRequest) api.Change {
	l.t.Helper()
	a := l.changes(id, req)
	if !a.Accepted {
		l.t.Fatalf("change of job %d refused: %s", id, a.Why)
	}
	return a
}

// record returns what Slurm says of a job.
func (l *lab) record(id uint32) (slurmctl.Job, error) {
	l.t.Helper()
	jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
	if err == nil && len(jobs) != 1 {
		err = fmt.Errorf("%d jobs with id %d", len(jobs), id)
	}
	if err != nil {
		return slurmctl.Job{}, err
	}
	return jobs[0], nil
}

// TestChange updates, grows, and shrinks the coming steps of jobs on demand, on a real Slurm, with
// both ways to grow, and with the database lost in between.
func TestChange(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			id := l.submitSpec(request.Request{Drive: drive}, "2@5m,3@1m")
			l.running(id, 1)

			// an update: longer than its time limit, and growths of another size
			a := l.accepted(id, api.ChangeRequest{Update: &api.Update{Profile: "4@20m,1@5m"}, DryRun: true})
			if job, err := l.Job(l.ctx(), id); err != nil || job.Profile != "2@5m,3@1m" {
				t.Fatalf("a dry run has changed it: %v %v", job.Profile, err)
			}
			if len(a.Plan) != 3 || a.Plan[1].Nodes != 4 {
				t.Errorf("the dry run tells %+v", a.Plan)
			}
			same := api.ChangeRequest{ID: "abc", Update: &api.Update{Profile: "4@20m,1@5m"}}
			l.accepted(id, same)
			l.accepted(id, same) // its answer was lost
			l.eventually("the time limit is raised and the marker written", func() error {
				r, err := l.record(id)
				if err != nil {
					return err
				}
				sp, _, err := request.ParseMarker(r.Comment)
				if err != nil || sp.Updated != "abc" || r.TimeLimit < 30*time.Minute {
					return fmt.Errorf("limit %v, comment %q (%v)", r.TimeLimit, r.Comment, err)
				}
				return nil
			})
			if a := l.changes(id, api.ChangeRequest{Update: &api.Update{Profile: "9@1m"}}); a.Accepted || !strings.Contains(a.Why, "9 nodes") {
				t.Errorf("more nodes than there are: %+v", a)
			}

			// a growth on demand, and back
			a = l.accepted(id, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 2, For: 60}})
			if a.Has == nil {
				t.Fatalf("no nodes: %+v", a)
			}
			l.has(*a.Has, 4)
			if a.Has.Step != 2 || a.Has.Steps != 5 {
				t.Errorf("step %d of %d, want 2 of 5", a.Has.Step, a.Has.Steps)
			}
			// the database is lost: the marker knows what was changed
			l.stop()
			for _, end := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(l.cfg.Database + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			l.start()
			l.eventually("the job is known again", func() error {
				job, err := l.Job(l.ctx(), id)
				if err == nil && (job.Step != 2 || !strings.HasSuffix(job.Profile, ",4@20m,1@5m")) {
					err = fmt.Errorf("step %d of %s", job.Step, job.Profile)
				}
				return err
			})
			a = l.accepted(id, api.ChangeRequest{From: 2, Shrink: &api.Shrink{Nodes: 2}})
			l.has(*a.Has, 2)
			l.has(l.next(id, a.Has.Step), 4)
			l.end(id)
		})
	}
}

// TestGrowDelay has an evolving job wait on a real Slurm while another grows on demand: the growth may make it later within
// grow_delay, and is refused beyond that.
func TestGrowDelay(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.GrowDelay = 10 * time.Minute })
	took := int64(0) // by the user's growths so far
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			id := l.submitSpec(request.Request{Drive: drive}, "2@40m")
			l.running(id, 1)
			stock := l.sbatch(1, "--nodes=4", "--exclusive", "--time=6")
			l.onNodes(stock, 4)
			waiting := l.submit("6@10m")
			before := l.planned(waiting).Plan[0].Start
			words := "and growths may make it 10m0s later (grow_delay)"
			if a := l.changes(id, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 2, For: 30 * 60}}); a.Accepted || !strings.Contains(a.Why, fmt.Sprintf("with it, job %d would start ", waiting)) || !strings.Contains(a.Why, words) {
				t.Errorf("a growth beyond the budget: %+v", a)
			}
			b, err := l.Budget(l.ctx())
			if l.must(err); len(b.Moved) > 0 {
				t.Errorf("the refused growth counts: %+v", b.Moved)
			}
			a := l.accepted(id, api.ChangeRequest{From: 1, Grow: &api.Grow{Nodes: 2, For: 10 * 60}})
			l.has(*a.Has, 4)
			l.eventually("the granted growth counts", func() error {
				b, err := l.Budget(l.ctx())
				if err != nil || len(b.Moved) != 1 || b.Moved[0].Job != waiting || b.Moved[0].Most != 600 || b.Growths[0].NodeSeconds != took+6*int64(b.Moved[0].Seconds) {
					return fmt.Errorf("%+v, %+v: %v", b.Growths, b.Moved, err)
				}
				took = b.Growths[0].NodeSeconds
				return nil
			})
			l.eventually("the waiting job is planned later, within the budget", func() error {
				later := l.planned(waiting).Plan[0].Start.Sub(before)
				if later <= time.Minute || later > 10*time.Minute {
					return fmt.Errorf("it is planned %v later", later)
				}
				return nil
			})
			l.cancelStock(1, stock)
			l.end(waiting)
			l.end(id)
		})
	}
}

// TestOpenTail runs a job whose last step is open, in both drive modes: it has the least there, grows up to the most, and
// is refused more.
func TestOpenTail(t *testing.T) {
	t.Parallel()
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		t.Run(string(drive), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(*config.Config) {})
			sp := request.Request{Drive: drive}
			l.must(sp.Set("profile", "1@10m,?2-4@20m"))
			l.must(sp.Settle())
			id := l.submitSpec(sp, sp.Profile.String())
			l.running(id, 1)
			l.accepted(id, api.ChangeRequest{Update: &api.Update{Profile: "1@10m,?2-4@20m"}, From: 1})
			for step := 1; step < 3; step++ {
				l.eventually(fmt.Sprintf("step %d is over", step), func() error {
					a, err := l.Next(l.ctx(), id, api.NextRequest{From: step})
					if err == nil && !a.Ready {
						err = errors.New(a.Note)
					}
					return err
				})
			}
			l.sizes(map[uint32]int{id: 2})
			if a := l.changes(id, api.ChangeRequest{From: 3, Grow: &api.Grow{Nodes: 3}}); a.Accepted || !strings.Contains(a.Why, "its claim is 4") {
				t.Errorf("more than its most: %+v", a)
			}
			if a := l.accepted(id, api.ChangeRequest{From: 3, Grow: &api.Grow{Nodes: 2}}); a.Has == nil || a.Has.Nodes != 4 {
				t.Errorf("its most: %+v", a)
			}
			l.sizes(map[uint32]int{id: 4})
		})
	}
}
