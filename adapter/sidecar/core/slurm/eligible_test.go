package slurm

import (
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestEligibleTellsRequestsApart(t *testing.T) {
	s := &state.Snapshot{Index: map[string]int{"a": 0, "b": 1, "c": 2},
		Nodes: []slurmctl.Node{{Name: "a", CPUs: 4, Memory: 100, Features: []string{"x"}}, {Name: "b", CPUs: 8, Memory: 200, Features: []string{"x", "y"}, GRES: "gpu:v100:2"},
			{Name: "c", CPUs: 8, Memory: 100, GRES: "gpu:a100:4(S:0-1),nvme:1"}},
		Partitions: map[string]slurmctl.Partition{"all": {Up: true, Nodes: []string{"a", "b", "c"}}, "two": {Up: true, Nodes: []string{"a", "b"}}}}
	for range 2 { // found, then remembered
		for _, want := range []struct {
			job   slurmctl.Job
			nodes []int
			gres  []slurmctl.GRES
		}{
			{slurmctl.Job{Partition: "all"}, []int{0, 1, 2}, nil},
			{slurmctl.Job{Partition: "two"}, []int{0, 1}, nil},
			{slurmctl.Job{Partition: "all", Features: "x"}, []int{0, 1}, nil},
			{slurmctl.Job{Partition: "all", Features: "x|z,y"}, []int{1}, nil},
			{slurmctl.Job{Partition: "all", MinCPUs: 8}, []int{1, 2}, nil},
			{slurmctl.Job{Partition: "all", MinMemory: 150}, []int{1}, nil},
			{slurmctl.Job{Partition: "all", ExcNodes: []string{"b"}}, []int{0, 2}, nil},
			{slurmctl.Job{Partition: "all", ReqNodes: []string{"b"}}, []int{1}, nil},
			{slurmctl.Job{Partition: "none"}, nil, nil},
			{slurmctl.Job{Partition: "all"}, []int{1, 2}, []slurmctl.GRES{{Name: "gpu", Count: 2}}},
			{slurmctl.Job{Partition: "all"}, []int{2}, []slurmctl.GRES{{Name: "gpu", Type: "a100", Count: 2}}},
			{slurmctl.Job{Partition: "all"}, nil, []slurmctl.GRES{{Name: "gpu", Count: 5}}},
		} {
			if got, err := Eligible(s, &want.job, want.gres); err != nil || !slices.Equal(got, want.nodes) {
				t.Errorf("%+v: %v, %v; want %v", want.job, got, err, want.nodes)
			}
		}
		if _, err := Eligible(s, &slurmctl.Job{Partition: "all", Heterogenous: true}, nil); err == nil {
			t.Error("a heterogeneous job is planned")
		}
		if _, err := Eligible(s, &slurmctl.Job{Partition: "all", Features: "[x|y]"}, nil); err == nil {
			t.Error("a constraint for all nodes together is planned")
		}
	}
}
