package core

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// TestEndedAgain: a job that was taken for ended and is adopted again is shown once.
func TestEndedAgain(t *testing.T) {
	c := newCore(config.Default(), time.Now())
	c.Step(time.Now(), Books{Ended: []BookedJob{{Job: row.Job{ID: 1, SlurmID: 1, State: row.Ended}}, {Job: row.Job{ID: 2, SlurmID: 2, State: row.Ended}}}})
	again := c.ended[0]
	again.State = row.Running
	c.add(again)
	if v := c.View(); len(v.Ended) != 1 || v.Ended[0].ID != 2 || len(v.Jobs) != 1 || v.Jobs[0].ID != 1 {
		t.Errorf("%+v", v)
	}
}
