package delay

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// bench is a sidecar without a Slurm, which plans.
type bench struct {
	*statetest.Bench
	t *testing.T
	s *state.Snapshot
}

func newBench(t *testing.T, nodes int) *bench {
	t.Helper()
	b := statetest.New(t, nodes)
	return &bench{b, t, b.Seen}
}

// plan has the queue planned.
func (b *bench) plan(s *state.Snapshot) {
	plan.TakePlans(b.Core, refit.Problem(b.Core, s).Plan(statetest.NoX()))
}

// startsIn plans and tells when the job is to start.
func (b *bench) startsIn(j *state.Job) time.Duration {
	b.t.Helper()
	b.plan(b.s)
	if len(j.Plan) == 0 {
		b.t.Fatalf("job %d has no plan: %s", j.SlurmID, j.Reason().Words())
	}
	return time.Duration(j.Plan[0].Start-b.s.Taken.Unix()) * time.Second
}
