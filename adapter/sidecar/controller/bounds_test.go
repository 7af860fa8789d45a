package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestHoldShares checks that a user whose jobs want nearly all reservations gets only its share.
// Another user's job starts beside them, with its growth held, and so does a stock job.
func TestHoldShares(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) {
		c.MaxHolds = 9
		c.HoldShares.Job.Reservations = 100
	})
	const greedy = "1@5m,2@10s,1@10s,2@10s,1@10s,2@10s,1@10s,2@10s" // four growths
	first, second := l.submitBy(0, greedy), l.submitBy(0, greedy)
	l.running(first, 1)
	l.running(second, 1)
	l.eventually("the second job says what is not held", func() error {
		job, err := l.Job(l.ctx(), second)
		if want := "not held yet: hold_shares.user.reservations allows 4 reservations"; err == nil && !strings.Contains(job.Reason, want) {
			err = fmt.Errorf("its reason is %q", job.Reason)
		}
		return err
	})
	if len(l.events("not held", 0)) == 0 {
		t.Error("no event says what is not held")
	}
	other := l.submitBy(1, "1@4m,3@1m")
	l.running(other, 1)
	if r := l.hold(other, 2); len(r.Nodes) != 2 || !r.Start.After(time.Now()) {
		t.Errorf("the other user's growth has the hold %+v", r)
	}
	stock := l.sbatch(1, "--nodes=1", "--exclusive", "--time=1", "--wrap=exec sleep 3")
	l.eventually("the stock job has run", func() error {
		if state := strings.TrimSpace(l.squeue(stock, "%T")); state == "PENDING" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	large := l.sbatch(1, "--nodes=4", "--exclusive", "--time=60", "--wrap=exec sleep 3") // one of five idle nodes is not held
	l.eventually("the price of the holds", func() error {
		kept := int64(0)
		for _, id := range []uint32{first, second, other} {
			job, err := l.Job(l.ctx(), id)
			if kept += job.HeldIdle; err != nil {
				return err
			}
		}
		if kept == 0 {
			return errors.New("future holds cost nothing, although a job waits for their nodes")
		}
		return nil
	})
	l.cancelStock(1, large)
	l.has(l.next(second, 1), 2) // early: its nodes are free
	l.has(l.next(other, 1), 3)
	l.cancel(first)
	l.cancel(second)
	l.cancelStock(1, other)
	l.clean()
}
