package plan

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestComing: a job that is about to be adopted gets the answer to ask again. If it learned that there
// is no such job, its script would end.
func TestComing(t *testing.T) {
	c := statetest.NewCore(config.Default(), time.Now())
	c.ByID[3] = &state.Job{Job: &row.Job{Owned: row.Owned{SlurmID: 3, UID: 7}}}
	c.Coming = map[slurmctl.JobID]uint32{1: 0, 2: 7, 3: 7}
	c.Refused[2] = state.Refused{Job: api.Job{ID: 2}}
	for id, want := range map[slurmctl.JobID]bool{1: true, 2: false, 3: false, 4: false} {
		if IsComing(c, id) != want {
			t.Errorf("job %d: coming %v", id, !want)
		}
	}
}
