package controller_test

import (
	"fmt"
	"slices"
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

func TestMerge(t *testing.T) {
	t.Parallel()
	// a job cancelled between its last poll and the merge leaks nodes (TestLeak)
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.HealLeaks = true })
	l.run("grows and shrinks again and again", func(l *lab) {
		id := l.submit("2@5s,5@5s,1@5s,3@5s")
		if job := l.running(id, 1); job.Drive != "merge" {
			l.t.Errorf("drive mode %s, want merge", job.Drive)
		}
		for step, nodes := range []int{2, 5, 1, 3} {
			if step > 0 {
				a := l.next(id, step)
				if len(a.Parts) != 1 {
					l.t.Errorf("%d parts, want the base job alone", len(a.Parts))
				}
				l.has(a, nodes)
			}
		}
		if a := l.next(id, 4); !a.Done {
			l.t.Errorf("after the last step: %+v, want Done", a)
		}
		l.end(id)
	})
	l.run("slurmdbd has a row for the run after a requeue", func(l *lab) {
		id := l.submit("1@20s,3@60s")
		l.running(id, 1)
		l.has(l.next(id, 1), 3)
		l.scontrol("requeue", fmt.Sprint(id))
		l.running(id, 1)
		l.end(id)
		l.eventually("a row for each size", func() error {
			rows, err := l.cluster.Run(l.ctx(), slurmtest.Root, "sacct", "-X", "-D", "-n", "-P", "-j", fmt.Sprint(id), "-o", "State,NNodes")
			if err == nil && !(strings.HasPrefix(rows, "RESIZING|1\nREQUEUED|3\nCANCELLED by ") && strings.HasSuffix(rows, "|1\n")) {
				err = fmt.Errorf("slurmdbd has %q", rows)
			}
			return err
		})
	})
	l.run("a requeued job that is held starts over once it is released", func(l *lab) {
		id := l.submit("1@20s,3@60s")
		l.running(id, 1)
		l.has(l.next(id, 1), 3)
		l.scontrol("requeuehold", "State=SpecialExit", fmt.Sprint(id))
		l.eventually("it waits, held", func() error {
			j, err := l.Job(l.ctx(), id)
			if err == nil && (j.State != "queued" || !strings.Contains(j.Reason, "held")) {
				err = fmt.Errorf("it is %s: %s", j.State, j.Reason)
			}
			return err
		})
		l.scontrol("release", fmt.Sprint(id))
		l.running(id, 1)
		l.has(l.next(id, 1), 3)
		l.end(id)
	})
	l.run("next repeated ends one step only", func(l *lab) {
		id := l.submit("1@20s,3@20s,2@20s")
		l.running(id, 1)
		answers := make(chan error, 3)
		for range 3 { // as from three ranks at once
			go func() {
				a, err := l.Next(l.ctx(), id, api.NextRequest{From: 1})
				if err == nil && (a.Step != 2 || a.Nodes != 3) {
					err = fmt.Errorf("step %d with %d nodes, want step 2 with 3", a.Step, a.Nodes)
				}
				answers <- err
			}()
		}
		for range 3 {
			if err := <-answers; err != nil {
				l.t.Error(err)
			}
		}
		l.has(l.next(id, 1), 3)
		l.end(id)
	})
	l.run("nobody starts on held nodes", func(l *lab) {
		id := l.submit("2@30s,8@30s")
		job := l.running(id, 1)
		rival := l.sbatch(1, "--nodes=4", "--exclusive", "--time=10")
		time.Sleep(3 * time.Second) // several of Slurm's cycles
		if n := l.slurmNodes(rival); n != 0 {
			l.t.Errorf("a stock job runs on %d nodes that are held for the growth", n)
		}
		short := time.Until(job.Plan[1].Start)
		if short < 20*time.Second {
			l.t.Fatalf("the growth is planned in %v already", short)
		}
		before, err := l.Allocation(l.ctx(), id)
		l.must(err)
		if next := before.Coming; next == nil || next.Step != 2 || next.Nodes != 8 || len(next.Arriving) != 6 || len(next.Leaving) != 0 || next.At.Unix() != job.Plan[1].Start.Unix() {
			l.t.Errorf("coming: %+v, want 6 nodes more at %v", next, job.Plan[1].Start)
		}
		a := l.next(id, 1)
		l.has(a, 8)
		if a.Coming != nil {
			l.t.Errorf("coming in the last step: %+v", a.Coming)
		}
		l.end(id)
		l.onNodes(rival, 4)
		l.cancelStock(1, rival)
	})
	l.run("released nodes are everybody's at once", func(l *lab) {
		id := l.submit("8@5s,2@30s")
		l.running(id, 1)
		rival := l.sbatch(1, "--nodes=6", "--exclusive", "--time=10")
		before, err := l.Allocation(l.ctx(), id)
		l.must(err)
		after := l.next(id, 1)
		l.has(after, 2)
		for _, name := range before.Coming.Leaving {
			if slices.Contains(after.Parts[0].NodeList, name) {
				l.t.Errorf("%s was to leave and is still there", name)
			}
		}
		if len(before.Coming.Leaving) != 6 {
			l.t.Errorf("%v were to leave, want 6 nodes", before.Coming.Leaving)
		}
		l.onNodes(rival, 6)
		l.cancelStock(1, rival)
		l.end(id)
	})
	for name, end := range map[string]struct {
		wrap string
		do   func(l *lab, id uint32)
		want string
	}{
		"script exits early": {wrap: "sleep 2", want: "COMPLETED"},
		"script fails":       {wrap: "sleep 2; exit 3", want: "FAILED"},
		"plain scancel":      {wrap: "exec sleep 600", do: func(l *lab, id uint32) { l.running(id, 1); l.cancel(id) }, want: "CANCELLED"},
		"cancelled parked":   {wrap: "exec sleep 600", do: func(l *lab, id uint32) { l.cancel(id) }, want: "CANCELLED"},
		"in the growth": {wrap: "exec sleep 600", do: func(l *lab, id uint32) {
			l.running(id, 1)
			go l.Next(l.ctx(), id, api.NextRequest{From: 1})
			time.Sleep(150 * time.Millisecond)
			l.cancel(id)
		}, want: "CANCELLED"},
	} {
		l.run(name+" and leaves nothing behind", func(l *lab) {
			id := l.submit("1@20s,3@20s,2@20s", "--wrap="+end.wrap)
			if end.do != nil {
				end.do(l, id)
			}
			if end.do == nil || name != "cancelled parked" {
				if job := l.ended(id); job.EndState != end.want {
					l.t.Errorf("it ended %s, want %s", job.EndState, end.want)
				}
			}
		})
	}
}

func TestCompanion(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]slurmtest.Options{
		"without permit_job_expansion": {Accounting: true},
		"with PrologFlags=Contain":     {Accounting: true, PermitJobExpansion: true, PrologFlags: "Contain"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, options)
			l.run("grows and shrinks", func(l *lab) {
				id := l.submit("2@5s,4@5s,6@5s,3@5s,1@5s")
				if job := l.running(id, 1); job.Drive != "companion" {
					l.t.Errorf("drive mode %s, want companion", job.Drive)
				}
				for step, nodes := range []int{2, 4, 6, 3, 1} {
					if step > 0 {
						l.has(l.next(id, step), nodes)
					}
				}
				l.end(id)
			})
			l.run("a lost companion is replaced", func(l *lab) {
				id := l.submit("1@5s,3@60s")
				l.running(id, 1)
				a := l.next(id, 1)
				l.cancel(a.Parts[1].Job)
				l.eventually("another companion", func() error {
					now, err := l.Allocation(l.ctx(), id)
					if err == nil && (now.Nodes != 3 || now.Parts[1].Job == a.Parts[1].Job) {
						err = fmt.Errorf("%d nodes in %d parts", now.Nodes, len(now.Parts))
					}
					return err
				})
				l.end(id)
			})
		})
	}
}

func TestChain(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{})
	l.run("every step a job of its own", func(l *lab) {
		ids := l.submitChain("1@10s,4@10s,2@10s", "", "sleep 2", "sleep 2", "sleep 2")
		for step, nodes := range []int{1, 4, 2} {
			job := l.running(ids[0], step+1)
			if n := l.slurmNodes(ids[step]); job.Nodes != nodes || n != nodes && n != 0 {
				l.t.Errorf("step %d has %d nodes by the sidecar, %d by Slurm, want %d", step+1, job.Nodes, n, nodes)
			}
		}
		if job := l.ended(ids[0]); job.EndState != "COMPLETED" {
			l.t.Errorf("it ended %s", job.EndState)
		}
	})
	l.run("a failed step ends it", func(l *lab) {
		ids := l.submitChain("1@10s,4@10s,2@10s", "", "sleep 1", "exit 1", "sleep 2")
		if job := l.ended(ids[0]); job.EndState != "FAILED" || job.Step != 2 {
			l.t.Errorf("it ended %s in step %d, want FAILED in step 2", job.EndState, job.Step)
		}
	})
}

// submitChain parks the jobs of a chain, as evosbatch --drive=chain does, with an option of sbatch unless it is "".
func (l *lab) submitChain(profile, option string, wraps ...string) []uint32 {
	l.t.Helper()
	var ids []uint32
	for i, wrap := range wraps {
		link := &request.ChainLink{Step: i + 1}
		args := []string{"--wrap=" + wrap}
		if option != "" {
			args = append(args, option)
		}
		if i > 0 {
			link.First = ids[0]
			args = append(args, "--dependency=afterok:"+strconv.Itoa(int(ids[i-1])), "--kill-on-invalid-dep=yes")
		}
		ids = append(ids, l.submitSpec(request.Request{Drive: drivemode.Chain, Chain: link}, profile, args...))
	}
	return ids
}

func TestAdoptsOnlyWhatItCanPlan(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{})
	id := l.sbatch(0, "--begin=now+3650days", "--comment=evo:v1;p=nonsense")
	l.eventually("the refusal", func() error {
		events, err := l.store.Events(l.ctx(), 0, 0, 100)
		for _, e := range events {
			if e.Kind == "refused" {
				return nil
			}
		}
		return fmt.Errorf("no event: %v", err)
	})
	if r, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id)); err != nil || len(r) != 1 || r[0].State != slurmctl.Pending {
		t.Errorf("the job is not parked any more: %+v %v", r, err)
	}
	l.cancel(id)
}
