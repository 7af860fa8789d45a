package slurmctl_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestMeasuredSteps writes energy into the database, as no node here measures any, and reads it through sacct: a value, then
// NO_VAL64, then what a counter shows that ran over.
func TestMeasuredSteps(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 2, Accounting: true})
	cfg, err := f.Config(f.ctx)
	f.must(err)
	if cfg.GathersEnergy() {
		t.Error("a cluster without sensors gathers energy")
	}
	began := time.Now()
	id := f.submit("srun -N2 sleep 2; srun -N2 sleep 1; srun -N2 sleep 1; sleep 600", "-N2", "--exclusive")
	f.wait(id, "its third step has ended", func(slurmctl.Job) bool { return len(f.measured(began)) == 3 && !f.measured(began)[2].End.IsZero() })
	for step, joules := range []uint64{7200, 1<<64 - 2, 1<<64 - 500} {
		f.must(f.cluster.SQL(f.ctx, fmt.Sprintf("UPDATE %s_step_table SET consumed_energy=%d WHERE id_step=%d", cfg.ClusterName, joules, step)))
	}
	steps := f.measured(began)
	if len(steps) != 3 || steps[0].Joules != 7200 || steps[1].Joules != -1 || steps[2].Joules != -1 || steps[0].End.Sub(steps[0].Start) < time.Second || steps[0].Nodes != "n[1-2]" {
		t.Errorf("%+v", steps)
	}
}

func (f *fixture) measured(since time.Time) []slurmctl.MeasuredStep {
	f.Helper()
	steps, err := f.MeasuredSteps(f.ctx, f.user.UID, since, time.Now())
	f.must(err)
	return steps
}
