package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
)

// TestPlanShares: one user's many long jobs cost neither memory nor time without bound, and another user's
// job is planned beside them.
func TestPlanShares(t *testing.T) {
	b := statetest.New(t, 64)
	var greedy []*state.Job
	for i := range 200 {
		greedy = append(greedy, b.Evolving(10+i, uint64(5000-i), "1@5m"+strings.Repeat(",32@10s,1@10s", 999), 60*time.Hour))
	}
	other := b.Evolving(1000, 1, "1@5m,2@5m", time.Hour)
	other.UID = 1001
	planAll(b)
	planned := 0
	for i, j := range greedy {
		if len(j.Plan) > 0 {
			planned++
			continue
		}
		if i == 0 || !strings.Contains(j.Reason().Words(), "is planned when earlier jobs of user have begun") {
			t.Fatalf("job %d of the user has no plan: %q", i+1, j.Reason().Words())
		}
	}
	if most := MostPlannedOfUser / (999 * (33 + 2*StepCost)); planned > most || planned < most/2 {
		t.Errorf("%d jobs of the user are planned, want about %d", planned, most)
	}
	if len(other.Plan) == 0 {
		t.Errorf("the other user's job has no plan: %s", other.Reason().Words())
	}
	for _, j := range greedy[:planned] { // as they leave the queue, others are planned
		j.Record.Priority, j.Record.Reason = 0, "JobHeldUser"
	}
	planAll(b)
	if len(greedy[planned].Plan) == 0 {
		t.Errorf("the next job has no plan: %s", greedy[planned].Reason().Words())
	}
}
