package controller_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestOrder checks that a parked job, which Slurm itself leaves at priority 1, counts as older than a
// stock job submitted after it, also once Slurm has computed that job's age.
func TestOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, PriorityType: "multifactor",
		ExtraConf: "PriorityWeightAge=100000\nPriorityMaxAge=00:10:00\nPriorityCalcPeriod=1"})
	busy := l.sbatch(1, "--nodes=8", "--exclusive", "--time=30")
	older := l.submit("8@5m")
	time.Sleep(8 * time.Second) // longer than from one poll to the next
	younger := l.sbatch(1, "--nodes=8", "--exclusive", "--time=30")
	var shown uint64
	l.eventually("the stock job's age", func() error {
		jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(younger))
		l.must(err)
		if shown = jobs[0].Priority; shown > 1 {
			return nil
		}
		nice := jobs[0].Nice + 1 // Slurm recomputes at once, not in a minute
		return errors.Join(l.slurm.UpdateJob(l.ctx(), slurmctl.JobID(younger), slurmctl.JobUpdate{Nice: &nice}), errors.New("none yet"))
	})
	l.eventually("the older job before the younger one", func() error {
		job, err := l.Job(l.ctx(), older)
		if err == nil && job.Priority <= shown {
			err = fmt.Errorf("its priority is %d, the stock job's %d", job.Priority, shown)
		}
		return err
	})
	l.cancelStock(1, busy)
	l.running(older, 1)
	l.cancelStock(1, younger)
	l.end(older)
	l.clean()
}
