package core

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestWaitsForLower: an evolving job waits for the end of a job that Slurm would suspend for
// a stock job in its place, and says so.
func TestWaitsForLower(t *testing.T) {
	for name, c := range map[string]struct {
		mode, partition string // of the cluster, of the evolving job
		says            bool
	}{
		"higher tier":    {"GANG,SUSPEND", "high", true},
		"same tier":      {"GANG,SUSPEND", "main", false},
		"no preemption":  {"OFF", "high", false},
		"it is requeued": {"REQUEUE", "high", false},
	} {
		b := newBench(t, 4)
		b.Partition("high", 1, 4)
		cfg := slurmctl.Config{Values: map[string]string{"PreemptType": "preempt/partition_prio", "PreemptMode": c.mode}}
		b.Rules.Limits = slurmctl.ParseLimits(cfg, slurmctl.LimitsText{Partitions: "PartitionName=main Nodes=n[1-4] PriorityTier=1 PreemptMode=" + c.mode +
			"\nPartitionName=high Nodes=n[1-4] PriorityTier=2 PreemptMode=" + c.mode + "\n"})
		b.s.Jobs = append(b.s.Jobs, slurmctl.Job{ID: 1, State: slurmctl.Running, Partition: "main", NodeList: statetest.Names(1, 4), NumNodes: 4,
			TimeLimit: time.Hour, EndTime: b.s.Taken.Add(time.Hour)})
		j := b.Evolving(2, 1, "2@5m,4@5m", time.Hour)
		j.Partition, j.Record.Partition = c.partition, c.partition
		in := b.startsIn(j)
		if says := strings.Contains(j.Reason().Words(), "planned for the end of job 1: Slurm would suspend it"); says != c.says || c.says && in < time.Hour {
			t.Errorf("%s: it starts in %v: %s", name, in, j.Reason().Words())
		}
	}
}
