package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/lab/internal/naive"
	"github.com/evoslurm/evoslurm/adapter/lab/machine"
)

// rigid returns a job that takes seconds and requests limit.
func rigid(submit, seconds, limit int64, nodes int) machine.Job {
	j := job(machine.Rigid, submit, float64(seconds), nodes, nodes, nodes)
	j.Limit = limit
	return j
}

// TestBackfillRandom checks that both start every job when the naive ones do.
func TestBackfillRandom(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var jobs []machine.Job
		var plain []naive.Rigid
		at := int64(0)
		for range 2 + chance.IntN(40) {
			at += chance.Int64N(20)
			seconds, limit, nodes := 1+chance.Int64N(60), int64(0), 1+chance.IntN(10)
			if chance.IntN(3) > 0 {
				limit = seconds - 5 + chance.Int64N(60) // some run longer than requested
			}
			limit = max(limit, 0)
			jobs = append(jobs, rigid(at, seconds, limit, nodes))
			plain = append(plain, naive.Rigid{Submit: at, Run: seconds, Limit: max(limit, seconds), Nodes: nodes})
		}
		for _, conservative := range []bool{false, true} {
			runs := simulate(t, 10, &machine.Backfill{Conservative: conservative}, jobs...)
			var got []int64
			for _, r := range runs {
				got = append(got, r.Start)
			}
			want := naive.EASY(10, plain)
			if conservative {
				want = naive.Conservative(10, plain)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, conservative %v:\n got %v\nwant %v\n%s", seed, conservative, got, want, fmt.Sprint(plain))
			}
		}
	}
}
