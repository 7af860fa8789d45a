package core

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestDeadlock: of jobs that wait for each other's nodes none gets a longer time limit; one that
// only waits for another does. Plans are made so that nobody comes into that, so no history shows it.
func TestDeadlock(t *testing.T) {
	b := newBench(t, 4)
	now := b.s.taken
	waits := func(id int, has, gets string) *job {
		j := b.evolving(id, 1, "1@10m,2@10m", 15*time.Minute)
		j.State, j.Step, j.StepStarted, j.StepEnded, j.extend = row.Waiting, 1, now.Add(-10*time.Minute), now, true
		j.held = []Part{{ID: slurmctl.JobID(id), Step: 1, Nodes: []string{has}}}
		j.record.State, j.record.NodeList, j.record.EndTime = slurmctl.Running, []string{has}, now.Add(5*time.Minute)
		j.plan = []plannedStep{{start: now.Add(-10 * time.Minute).Unix(), end: now.Unix(), nodes: []string{has}},
			{start: now.Unix(), end: now.Add(10 * time.Minute).Unix(), nodes: []string{has, gets}}}
		return j
	}
	first, second, third := waits(1, "n1", "n2"), waits(2, "n2", "n1"), waits(3, "n3", "n1")
	for j, other := range map[*job]*job{first: second, second: first, third: nil} {
		if got := b.deadlocked(j); got != other {
			t.Errorf("job %d is in a deadlock with %v, want %v", j.SlurmID, got, other)
		}
		raised := len(b.shortParts(b.s, j)) > 0
		if raised != (other == nil) || strings.Contains(j.short, "waits for nodes of") == raised {
			t.Errorf("job %d: limit raised: %v; %s", j.SlurmID, raised, j.short)
		}
	}
}
