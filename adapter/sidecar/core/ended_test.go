package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestEndedAgain: a job that was taken for ended and is adopted again is shown once.
func TestEndedAgain(t *testing.T) {
	c := statetest.NewCore(config.Default(), time.Now())
	step(c, time.Now(), msg.Books{Ended: []msg.BookedJob{{Job: row.Job{Owned: row.Owned{ID: 1, SlurmID: 1}, Life: row.Life{State: row.Ended}}}, {Job: row.Job{Owned: row.Owned{ID: 2, SlurmID: 2}, Life: row.Life{State: row.Ended}}}}})
	again := c.Ended[0]
	again.State = row.Running
	adopt.Add(c, again)
	if v := view.ViewOf(c); len(v.Ended) != 1 || v.Ended[0].ID != 2 || len(v.Jobs) != 1 || v.Jobs[0].ID != 1 {
		t.Errorf("%+v", v)
	}
}

// TestKnownAfterClockStep: a job is known again after the clock was set, by the time at which Slurm says that it was submitted.
func TestKnownAfterClockStep(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	c := statetest.NewCore(config.Default(), at)
	j := &state.Job{Job: &row.Job{Owned: row.Owned{SlurmID: 5, UID: 1000, Submitted: at}}}
	c.AddJob(j, nil)
	first := j.ID
	clockSet(c, 5*time.Second)
	again := &state.Job{Job: &row.Job{Owned: row.Owned{SlurmID: 5, UID: 1000, Submitted: at.Add(-5 * time.Second)}}}
	if c.AddJob(again, nil); again.ID != first {
		t.Errorf("it has row %d, then row %d", first, again.ID)
	}
}
