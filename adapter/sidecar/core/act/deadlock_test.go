package act

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDeadlock: of jobs that wait for each other's nodes none gets a longer time limit; one that
// only waits for another does. Plans are made so that nobody comes into that, so no history shows it.
func TestDeadlock(t *testing.T) {
	b := statetest.New(t, 4)
	now := b.Seen.Taken
	waits := func(id int, has, gets string) *state.Job {
		j := b.Evolving(id, 1, "1@10m,2@10m", 15*time.Minute)
		j.State, j.Step, j.StepStarted, j.StepEnded, j.Extend = row.Waiting, 1, now.Add(-10*time.Minute), now, true
		j.Held = []msg.Part{{ID: slurmctl.JobID(id), Step: 1, Nodes: []string{has}}}
		j.Record.State, j.Record.NodeList, j.Record.EndTime = slurmctl.Running, []string{has}, now.Add(5*time.Minute)
		j.Plan = []msg.PlannedStep{{Start: now.Add(-10 * time.Minute).Unix(), End: now.Unix(), Nodes: []string{has}},
			{Start: now.Unix(), End: now.Add(10 * time.Minute).Unix(), Nodes: []string{has, gets}}}
		return j
	}
	first, second, third := waits(1, "n1", "n2"), waits(2, "n2", "n1"), waits(3, "n3", "n1")
	for j, other := range map[*state.Job]*state.Job{first: second, second: first, third: nil} {
		if got := Deadlocked(b.Core, j); got != other {
			t.Errorf("job %d is in a deadlock with %v, want %v", j.SlurmID, got, other)
		}
		raised := len(ShortParts(b.Core, b.Seen, j)) > 0
		if raised != (other == nil) || strings.Contains(j.Short, "waits for nodes of") == raised {
			t.Errorf("job %d: limit raised: %v; %s", j.SlurmID, raised, j.Short)
		}
	}
	third.Plan, third.YieldedTo = third.Plan[:1], 1 // the first comes before it, and gets its node
	first.Plan[1].Nodes = []string{"n1", "n3"}
	if got := Deadlocked(b.Core, third); got != first {
		t.Errorf("the job that yielded is in a deadlock with %v", got)
	}
}
