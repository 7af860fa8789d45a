package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestDelayBudget checks that nodes held for a growth in seven hours keep no job from starting that
// Slurm puts first, from a partition with a higher tier, nor one of the same partition with a
// shorter budget.
func TestDelayBudget(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 8,
		Partitions: []slurmtest.Partition{
			{Name: "low", Extra: "MaxTime=INFINITE DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE"},
			{Name: "high", Extra: "MaxTime=INFINITE DefaultTime=60 PriorityTier=10 PreemptMode=OFF"},
		},
		ExtraConf: "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n",
	})
	for _, partition := range []string{"high", "low"} {
		before := l.lastEvent()
		greedy := l.submit("1@30m,8@7h", "--partition=low")
		l.running(greedy, 1)
		l.hold(greedy, 2)
		stock := l.sbatch(1, "--partition="+partition, "--nodes=4", "--exclusive", "--time=8:00:00")
		l.eventually("the stock job runs", func() error {
			if state := strings.TrimSpace(l.squeue(stock, "%T %r")); !strings.HasPrefix(state, "RUNNING") {
				return errors.New(state)
			}
			return nil
		})
		if lapsed := l.events("lapsed", before); len(lapsed) != 1 || !strings.Contains(string(lapsed[0].Detail), `"budget"`) {
			t.Errorf("partition %s: events %v", partition, lapsed)
		}
		l.eventually("the sidecar says why", func() error {
			j, err := l.Job(l.ctx(), greedy)
			if err == nil && !strings.Contains(j.Reason, "because of its holds") {
				err = fmt.Errorf("the reason is %q", j.Reason)
			}
			return err
		})
		l.running(greedy, 1)
		l.cancelStock(1, stock)
		l.cancel(greedy)
		l.ended(greedy)
	}
}
