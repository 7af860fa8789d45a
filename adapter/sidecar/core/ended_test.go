package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/talk"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestEndedAgain: a job that was taken for ended and is adopted again is shown once.
func TestEndedAgain(t *testing.T) {
	c := statetest.NewCore(config.Default(), time.Now())
	step(c, time.Now(), msg.Books{Ended: []msg.BookedJob{{Job: row.Job{Owned: row.Owned{ID: 1, SlurmID: 1}, Life: row.Life{State: row.Ended}}}, {Job: row.Job{Owned: row.Owned{ID: 2, SlurmID: 2}, Life: row.Life{State: row.Ended}}}}})
	again := c.Ended[0]
	again.State = row.Running
	adopt.Add(c, again)
	if v := talk.ViewOf(c); len(v.Ended) != 1 || v.Ended[0].ID != 2 || len(v.Jobs) != 1 || v.Jobs[0].ID != 1 {
		t.Errorf("%+v", v)
	}
}
