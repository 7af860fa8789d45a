package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
)

// TestShortJobsArePlanned: the share of a lone user is enough for 1,000 ordinary jobs.
func TestShortJobsArePlanned(t *testing.T) {
	job := slurm.Candidate{Profile: planner.Profile{{Duration: 60, Nodes: 10}, {Duration: 60, Nodes: 50}, {Duration: 60, Nodes: 30}, {Duration: 60, Nodes: 50}, {Duration: 60, Nodes: 10}}}
	var all planned
	for range 1000 {
		all = all.with(&job)
	}
	if all.cost > MostPlannedOfUser {
		t.Errorf("they cost %d, a user may have %d", all.cost, MostPlannedOfUser)
	}
}

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
	if planned < 2 || planned > 5 {
		t.Errorf("%d jobs of the user are planned, want 2 to 5: they have %d steps", planned, 1999*planned)
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
