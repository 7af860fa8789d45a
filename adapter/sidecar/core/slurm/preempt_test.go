package slurm

import (
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestFreeFor checks when a job can begin on the nodes n1 and n2.
func TestFreeFor(t *testing.T) {
	const tiers = "PartitionName=main Nodes=n[1-4] PriorityTier=1 PreemptMode=REQUEUE\nPartitionName=high Nodes=n[1-4] PriorityTier=2 PreemptMode=REQUEUE\n"
	for name, c := range map[string]struct {
		change    func(b *statetest.Bench)
		partition string // of the job
		preempts  bool   // Slurm ends jobs of lower tiers
		want      bool
	}{
		"both are idle":                     {func(*statetest.Bench) {}, "high", true, true},
		"a stock job of the lower tier":     {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour) }, "high", true, true},
		"the same without preemption":       {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour) }, "high", false, false},
		"a stock job of the same tier":      {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour) }, "main", true, false},
		"it is completing":                  {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour).State = slurmctl.Completing }, "high", true, false},
		"it is suspended":                   {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour).State = slurmctl.Suspended }, "high", true, false},
		"an evolving job of the lower tier": {func(b *statetest.Bench) { b.Runs(b.Evolving(9, 1, "1@1m", time.Hour), "n2") }, "high", true, false},
		"two jobs share it, one yields": {func(b *statetest.Bench) {
			b.StockRuns(9, "n1", time.Hour)
			b.StockRuns(8, "n1", time.Hour).Partition = "high"
		}, "high", true, false},
		"its job yields, and it is drained": {func(b *statetest.Bench) { b.StockRuns(9, "n1", time.Hour); b.Seen.Nodes[0].State = "drained" }, "high", true, false},
		"idle, and drained":                 {func(b *statetest.Bench) { b.Seen.Nodes[1].State = "drained" }, "high", true, false},
		"idle, and off":                     {func(b *statetest.Bench) { b.Seen.Nodes[1].Flags = "~" }, "high", true, false},
		"off, and Slurm switches nodes on":  {func(b *statetest.Bench) { b.Seen.Nodes[1].Flags, b.Seen.LeftToSlurm = "~", true }, "high", true, true},
		"going off":                         {func(b *statetest.Bench) { b.Seen.Nodes[1].Flags, b.Seen.LeftToSlurm = "%", true }, "high", true, false},
		"a job on another node":             {func(b *statetest.Bench) { b.StockRuns(9, "n3", time.Hour) }, "main", true, true},
		"a node that Slurm does not show":   {func(b *statetest.Bench) { delete(b.Seen.Index, "n2") }, "high", true, false},
		"a lower job on n1, a higher on n2.": {func(b *statetest.Bench) {
			b.StockRuns(9, "n1", time.Hour)
			b.StockRuns(8, "n2", time.Hour).Partition = "high"
		}, "high", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := statetest.New(t, 4)
			if c.preempts {
				cfg := slurmctl.Config{Values: map[string]string{"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}}
				b.Rules.Limits = slurmctl.ParseLimits(cfg, slurmctl.LimitsText{Partitions: tiers})
			}
			c.change(b)
			if got := FreeFor(b.Core, b.Seen, []string{"n1", "n2"}, &slurmctl.Job{Partition: c.partition}); got != c.want {
				t.Errorf("free: %v", got)
			}
		})
	}
}
