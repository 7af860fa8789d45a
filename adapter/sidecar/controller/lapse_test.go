package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestLapse checks that nodes are held for jobs that keep to their profile, not for a step that
// never ends.
func TestLapse(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.Grace = 4 * time.Second })
	says := func(l *lab, id uint32, words ...string) {
		l.t.Helper()
		l.eventually("the job's reason", func() error {
			job, err := l.Job(l.ctx(), id)
			for _, w := range words {
				if !strings.Contains(job.Reason, w) {
					return fmt.Errorf("the reason is %q, %v", job.Reason, err)
				}
			}
			return err
		})
	}
	holds := func(l *lab) int {
		l.t.Helper()
		all, err := l.slurm.Reservations(l.ctx())
		l.must(err)
		return len(all)
	}
	l.run("a growth", func(l *lab) {
		id := l.submit("1@5s,7@2m")
		l.running(id, 1)
		l.hold(id, 2)
		stock := l.sbatch(1, "--nodes=2", "--exclusive", "--time=5")
		l.eventually("the stock job runs", func() error {
			if state := strings.TrimSpace(l.squeue(stock, "%T")); state != "RUNNING" {
				return errors.New(state)
			}
			return nil
		})
		says(l, id, "longer than its profile says; nodes are no longer held", "when it calls next")
		if len(l.events("lapsed", 0)) != 1 {
			l.t.Error("no event tells of it")
		}
		l.stop()
		l.start()
		says(l, id, "no longer held", "when it calls next")
		time.Sleep(2 * time.Second) // some cycles
		if n := holds(l); n != 0 {
			l.t.Errorf("there are %d holds after a restart", n)
		}
		type result struct {
			api.Allocation
			error
		}
		done := make(chan result, 1)
		go func() {
			a, err := l.Next(l.ctx(), id, api.NextRequest{From: 1})
			done <- result{a, err}
		}()
		says(l, id, "waits for 6 nodes, replanned for")
		l.hold(id, 2) // 6 of 7 while two are busy for minutes: nothing that Slurm would keep by itself
		l.cancelStock(1, stock)
		r := <-done
		l.must(r.error)
		l.has(r.Allocation, 7)
		l.cancel(id)
		l.ended(id)
	})
	l.run("a chain", func(l *lab) {
		ids := l.submitChain("1@5s,7@1m", "sleep 20", "exec sleep 600")
		l.running(ids[0], 1)
		l.hold(ids[0], 2)
		stock := l.sbatch(1, "--nodes=2", "--exclusive", "--time=1", "--wrap=exec sleep 5")
		says(l, ids[0], "no longer held", "when it ends")
		l.eventually("the stock job has run", func() error {
			if state := strings.TrimSpace(l.squeue(stock, "%T")); state != "COMPLETED" && state != "COMPLETING" && state != "RUNNING" {
				return errors.New(state)
			}
			return nil
		})
		l.running(ids[0], 2)
		l.cancel(ids[1])
		l.ended(ids[0])
	})
	l.run("only shrinks to come: it keeps its plan", func(l *lab) {
		id := l.submit("3@3s,2@5s,1@1m")
		l.running(id, 1)
		says(l, id, "longer than its profile says")
		if job := l.running(id, 1); strings.Contains(job.Reason, "held") || len(job.Plan) != 3 {
			l.t.Errorf("%q, planned %v", job.Reason, job.Plan)
		}
		l.has(l.next(id, 1), 2)
		l.cancel(id)
		l.ended(id)
	})
	l.run("an operator cancels the holds", func(l *lab) {
		id := l.submit("1@10m,7@2m")
		l.running(id, 1)
		l.hold(id, 2)
		l.eventually("the holds are cancelled", func() error {
			_, err := l.CancelHolds(l.ctx(), id, api.CancelHolds{By: "root"}) // not while the job is being changed
			return err
		})
		stock := l.sbatch(1, "--nodes=2", "--exclusive", "--time=30")
		l.eventually("the stock job runs", func() error {
			if state := strings.TrimSpace(l.squeue(stock, "%T")); state != "RUNNING" {
				return errors.New(state)
			}
			return nil
		})
		says(l, id, "root has cancelled its holds", "when it calls next")
		if _, err := l.CancelHolds(l.ctx(), id, api.CancelHolds{By: "root"}); !errors.Is(err, api.ErrConflict) {
			l.t.Errorf("again: %v", err)
		}
		l.cancelStock(1, stock)
		l.has(l.next(id, 1), 7)
		l.cancel(id)
		l.ended(id)
	})
}
