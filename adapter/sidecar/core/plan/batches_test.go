package plan

import (
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
)

// TestBatches: nobody is overtaken near the front, and a long queue makes no more
// batches than a short one.
func TestBatches(t *testing.T) {
	left, right, apart := []int{0, 1, 2}, []int{2, 3, 4}, []int{7, 8}
	list := func(sets ...[]int) (all []slurm.Candidate) {
		for i, nodes := range sets {
			all = append(all, slurm.Candidate{Nodes: nodes, Earliest: int64(i)})
		}
		return all
	}
	for _, c := range []struct {
		name string
		sets [][]int
		want []int // batch of each job
	}{
		{"one partition", [][]int{left, left, left}, []int{0, 0, 0}},
		{"partitions apart", [][]int{left, apart, left, apart}, []int{0, 1, 0, 1}},
		{"partitions that share a node", [][]int{left, right, left, left, right}, []int{0, 1, 2, 2, 3}},
		{"one apart from both", [][]int{left, apart, right, apart, left}, []int{0, 1, 2, 1, 3}},
	} {
		got := make([]int, len(c.sets))
		for b, batch := range Batches(nil, list(c.sets...)) {
			for _, j := range batch.Jobs {
				got[j.Earliest] = b
			}
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: jobs are in batches %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
	var turns [][]int
	for range 5000 {
		turns = append(turns, left, right)
	}
	all := Batches(nil, list(turns...))
	if len(all) != OrderedBatches+1 {
		t.Fatalf("%d batches of 10,000 jobs that take turns, want %d", len(all), OrderedBatches+1)
	}
	next := int64(0)
	for b, batch := range all {
		for k, j := range batch.Jobs {
			if want := next + int64(k); b < OrderedBatches-1 && j.Earliest != want {
				t.Errorf("batch %d has job %d, want job %d", b, j.Earliest, want)
			}
			if k > 0 && batch.Jobs[k-1].Earliest >= j.Earliest {
				t.Errorf("batch %d has job %d after job %d", b, j.Earliest, batch.Jobs[k-1].Earliest)
			}
		}
		next += int64(len(batch.Jobs))
	}
}
