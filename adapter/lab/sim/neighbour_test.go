package sim_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/sim"
	"github.com/evoslurm/evoslurm/planner"
)

// TestNeighbourDelaysNobody checks in random workloads that no job starts later than if evolving
// jobs are rigid at peak, that the machine always suffices, and that many jobs start sooner.
func TestNeighbourDelaysNobody(t *testing.T) {
	sooner, all := 0, 0
	for seed := range uint64(200) {
		for _, name := range sim.Baselines {
			chance := rand.New(rand.NewPCG(seed, 7))
			nodes := 4 + chance.IntN(12)
			var jobs []sim.NeighbourJob
			at := int64(0)
			for range 5 + chance.IntN(60) {
				at += chance.Int64N(30)
				j := sim.NeighbourJob{Submit: at, Profile: planner.Profile{{Duration: 1 + chance.Int64N(100), Nodes: 1 + chance.IntN(nodes)}}}
				if chance.IntN(3) == 0 {
					for range 1 + chance.IntN(4) {
						j.Profile = append(j.Profile, planner.Step{Duration: 1 + chance.Int64N(60), Nodes: 1 + chance.IntN(nodes)})
					}
				}
				if j.Limit = j.Profile.Duration(); chance.IntN(2) == 0 {
					j.Limit += chance.Int64N(100)
				}
				jobs = append(jobs, j)
			}
			if err := sim.Neighbour(context.Background(), name, nodes, jobs); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			for i, j := range jobs {
				if j.Start < j.Submit || j.Start > j.Rigid {
					t.Fatalf("seed %d, %s: job %d, submitted at %d, starts at %d; beside rigid ones at %d", seed, name, i, j.Submit, j.Start, j.Rigid)
				}
				all++
				if j.Start < j.Rigid {
					sooner++
				}
			}
			for i := range jobs { // second by second
				now, used := jobs[i].Start, 0
				for _, j := range jobs {
					if j.Start <= now && now < j.Start+j.Profile.Duration() {
						used += j.Profile.At(now - j.Start)
					}
				}
				if used > nodes {
					t.Fatalf("seed %d, %s: %d nodes in use at %d; there are %d", seed, name, used, now, nodes)
				}
			}
		}
	}
	if sooner < all/20 {
		t.Errorf("%d of %d start sooner", sooner, all)
	}
	t.Logf("%d of %d start sooner", sooner, all)
}

// TestNeighbour checks that a stock job runs on nodes that an evolving job has not grown into,
// unless it would last too long or needs more than these, even if more are free.
func TestNeighbour(t *testing.T) {
	evolving := planner.Profile{{Duration: 100, Nodes: 1}, {Duration: 100, Nodes: 3}}
	stock := func(submit, seconds, limit int64, nodes int) sim.NeighbourJob {
		return sim.NeighbourJob{Submit: submit, Limit: limit, Profile: planner.Profile{{Duration: seconds, Nodes: nodes}}}
	}
	jobs := []sim.NeighbourJob{{Profile: evolving, Limit: 200}, stock(5, 50, 90, 2), stock(6, 50, 300, 2), stock(7, 10, 20, 3), stock(8, 400, 400, 1)}
	if err := sim.Neighbour(context.Background(), "easy", 4, jobs); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ start, rigid int64 }{{0, 0}, {5, 200}, {250, 250}, {300, 300}, {8, 8}} {
		if j := jobs[i]; j.Start != want.start || j.Rigid != want.rigid {
			t.Errorf("job %d: at %d, beside rigid ones at %d; want %+v", i, j.Start, j.Rigid, want)
		}
	}
	if err := sim.Neighbour(context.Background(), "easy", 2, jobs); err == nil {
		t.Error("a job that is too large")
	}
}
