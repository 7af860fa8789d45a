package core

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/view"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSeveralPartitions(t *testing.T) {
	// two is a bench with partition a of n1 to n4, where a stock job of higher priority
	// takes an hour, b of n3 to n8, with n3 and n4 in use, and a job for both.
	two := func(t *testing.T, profile string) (*bench, *state.Job) {
		b := newBench(t, 8)
		b.Partition("a", 1, 4)
		b.Partition("b", 3, 8)
		j := b.Evolving(1, 1, profile, time.Hour)
		j.Partition, j.Record.Partition = "a,b", "a,b"
		b.Stock(2, 1000, 4, time.Hour-stock.UntilLook*time.Second)
		b.s.Jobs[1].Partition = "a"
		return b, j
	}
	in := func(b *bench, j *state.Job, partition string, start time.Duration) {
		b.t.Helper()
		if at := b.startsIn(j); at.Round(time.Minute) != start || slurm.PartitionFor(b.Core, b.s, j) != partition || view.Describe(b.Core, j).Partition != partition {
			b.t.Errorf("it is to start in %v in partition %s on %v, want %s in %v", at, slurm.PartitionFor(b.Core, b.s, j), j.Planned(), partition, start)
		}
	}
	t.Run("the one in which it completes first", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		in(b, j, "b", 0)
	})
	t.Run("as given where both do", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		b.s.Jobs[1].State = slurmctl.Completed
		in(b, j, "a", 0)
		j.Plan = nil
		j.Partition, j.Record.Partition = "b,a", "b,a"
		in(b, j, "b", 0)
	})
	t.Run("never nodes of both", func(t *testing.T) {
		b, j := two(t, "2@5m,6@5m")
		in(b, j, "b", 55*time.Minute)
		j.Profile[1].Nodes = 7
		if b.plan(b.s); len(j.Plan) > 0 || !strings.Contains(j.Reason().Words(), "partition b has 6 nodes") {
			t.Errorf("it has plan %v, in words: %s", j.Plan, j.Reason().Words())
		}
	})
	t.Run("limits of a partition", func(t *testing.T) {
		for _, limit := range []func(*slurmctl.Partition){
			func(p *slurmctl.Partition) { p.MaxTime = 59 * time.Minute },
			func(p *slurmctl.Partition) { p.MaxNodes = 3 },
			func(p *slurmctl.Partition) { p.MinNodes = 3 },
			func(p *slurmctl.Partition) { p.Up = false },
		} {
			b, j := two(t, "2@5m,4@5m")
			p := b.s.Partitions["b"]
			limit(&p)
			b.s.Partitions["b"] = p
			in(b, j, "a", time.Hour)
		}
	})
	t.Run("refused, and not driven", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		j.RefusedIn = map[string]state.Refusal{"b": {"not for you", b.Now.Add(slurm.RefusedFor)}}
		in(b, j, "a", time.Hour)
		j.RefusedIn, b.Config.Partitions = nil, []string{"a"}
		in(b, j, "a", time.Hour)
	})
	t.Run("moved before", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		j.Record.Partition = "a" // it did not start there
		in(b, j, "b", 0)
		j.Record.Partition = "main" // somebody has moved it
		if b.plan(b.s); slurm.PartitionFor(b.Core, b.s, j) != "" {
			t.Errorf("it is planned in %s", slurm.PartitionFor(b.Core, b.s, j))
		}
	})
	t.Run("far back in a queue", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		for i := range 2 * plan.OrderedBatches {
			next := b.Evolving(10+i, 1, "2@5m,4@5m", time.Hour)
			next.Partition, next.Record.Partition = "a,b", "a,b"
		}
		in(b, j, "b", 0)
		for _, other := range b.Active {
			if len(other.Plan) == 0 || slurm.PartitionFor(b.Core, b.s, other) == "" {
				t.Fatalf("job %d has no plan in one partition: %s", other.SlurmID, other.Reason().Words())
			}
		}
	})
}
