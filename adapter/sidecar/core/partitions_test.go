package core

import (
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSeveralPartitions(t *testing.T) {
	// two is a bench with partition a of n1 to n4, where a stock job of higher priority
	// takes an hour, b of n3 to n8, with n3 and n4 in use, and a job for both.
	two := func(t *testing.T, profile string) (*bench, *job) {
		b := newBench(t, 8)
		b.partition("a", 1, 4)
		b.partition("b", 3, 8)
		j := b.evolving(1, 1, profile, time.Hour)
		j.Partition, j.record.Partition = "a,b", "a,b"
		b.stock(2, 1000, 4, time.Hour-untilLook*time.Second)
		b.s.jobs[1].Partition = "a"
		return b, j
	}
	in := func(b *bench, j *job, partition string, start time.Duration) {
		b.t.Helper()
		if at := b.startsIn(j); at.Round(time.Minute) != start || b.partitionFor(b.s, j) != partition || b.describe(j).Partition != partition {
			b.t.Errorf("it is to start in %v in partition %s on %v, want %s in %v", at, b.partitionFor(b.s, j), j.planned(), partition, start)
		}
	}
	t.Run("the one in which it completes first", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		in(b, j, "b", 0)
	})
	t.Run("as given where both do", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		b.s.jobs[1].State = slurmctl.Completed
		in(b, j, "a", 0)
		j.plan = nil
		j.Partition, j.record.Partition = "b,a", "b,a"
		in(b, j, "b", 0)
	})
	t.Run("never nodes of both", func(t *testing.T) {
		b, j := two(t, "2@5m,6@5m")
		in(b, j, "b", 55*time.Minute)
		j.Profile[1].Nodes = 7
		if b.plan(b.s); len(j.plan) > 0 || !strings.Contains(j.reason.words(), "partition b has 6 nodes") {
			t.Errorf("it has plan %v, in words: %s", j.plan, j.reason.words())
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
			p := b.s.partitions["b"]
			limit(&p)
			b.s.partitions["b"] = p
			in(b, j, "a", time.Hour)
		}
	})
	t.Run("refused, and not driven", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		j.refusedIn = map[string]refusal{"b": {"not for you", time.Now().Add(refusedFor)}}
		in(b, j, "a", time.Hour)
		j.refusedIn, b.cfg.Partitions = nil, []string{"a"}
		in(b, j, "a", time.Hour)
	})
	t.Run("moved before", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		j.record.Partition = "a" // it did not start there
		in(b, j, "b", 0)
		j.record.Partition = "main" // somebody has moved it
		if b.plan(b.s); b.partitionFor(b.s, j) != "" {
			t.Errorf("it is planned in %s", b.partitionFor(b.s, j))
		}
	})
	t.Run("far back in a queue", func(t *testing.T) {
		b, j := two(t, "2@5m,4@5m")
		for i := range 2 * orderedBatches {
			next := b.evolving(10+i, 1, "2@5m,4@5m", time.Hour)
			next.Partition, next.record.Partition = "a,b", "a,b"
		}
		in(b, j, "b", 0)
		for _, other := range b.active {
			if len(other.plan) == 0 || b.partitionFor(b.s, other) == "" {
				t.Fatalf("job %d has no plan in one partition: %s", other.SlurmID, other.reason.words())
			}
		}
	})
}
