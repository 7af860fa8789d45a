package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestBounds: a job whose holds do not fit below the site's bounds waits and keeps nothing
// from others; one that can never fit is refused.
func TestBounds(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
		c.HeldTime.User = 15 * time.Second // two node-minutes of eight nodes
		c.MaxHolds = 4
	})
	says := func(id uint32, words ...string) {
		t.Helper()
		l.eventually(fmt.Sprintf("what is told of job %d", id), func() error {
			job, err := l.Job(l.ctx(), id)
			for _, w := range words {
				if !strings.Contains(job.Reason, w) {
					return fmt.Errorf("the reason is %q, %v", job.Reason, err)
				}
			}
			return err
		})
	}
	first := l.submit("1@50s,3@1m") // holds 100 of 120 node-seconds
	l.running(first, 1)
	second := l.submit("1@40s,2@1m") // wants 40
	says(second, "held_time.user allows", "beside", "it begins once they fit")
	never := l.submit("1@10m,2@1m")
	says(never, "refused", "0.2 node-hours", "held_time.user allows 0 node-hours")
	manyHolds := l.submit("1@1s,2@1s,3@1s,4@1s,5@1s")
	says(manyHolds, "refused", "5 reservations, max_holds allows 4")
	rigid := l.submit("2@1m") // holds nothing, and is another one's as well as not
	l.running(rigid, 1)
	other := l.sbatch(1, "--nodes=1", "--exclusive", "--time=1", "--wrap=exec sleep 3") // nothing is kept from it
	l.eventually("the stock job has run", func() error {
		if state := strings.TrimSpace(l.squeue(other, "%T")); state == "PENDING" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	if job, err := l.Job(l.ctx(), second); err != nil || job.State != "queued" {
		t.Errorf("the second job is %s, %v", job.State, err)
	}
	l.has(l.next(first, 1), 3) // early: no bound is needed any more
	l.running(second, 1)
	for _, id := range []uint32{first, second, never, manyHolds, rigid} {
		l.cancel(id)
	}
	l.clean()
}
