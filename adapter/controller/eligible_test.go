package controller

import (
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestEligibleTellsRequestsApart(t *testing.T) {
	s := &snapshot{index: map[string]int{"a": 0, "b": 1, "c": 2},
		nodes: []slurmctl.Node{{Name: "a", CPUs: 4, Memory: 100, Features: []string{"x"}}, {Name: "b", CPUs: 8, Memory: 200, Features: []string{"x", "y"}},
			{Name: "c", CPUs: 8, Memory: 100}},
		partitions: map[string]slurmctl.Partition{"all": {Up: true, Nodes: []string{"a", "b", "c"}}, "two": {Up: true, Nodes: []string{"a", "b"}}}}
	for range 2 { // found, then remembered
		for _, want := range []struct {
			job   slurmctl.Job
			nodes []int
		}{
			{slurmctl.Job{Partition: "all"}, []int{0, 1, 2}},
			{slurmctl.Job{Partition: "two"}, []int{0, 1}},
			{slurmctl.Job{Partition: "all", Features: "x"}, []int{0, 1}},
			{slurmctl.Job{Partition: "all", Features: "x|z,y"}, []int{1}},
			{slurmctl.Job{Partition: "all", MinCPUs: 8}, []int{1, 2}},
			{slurmctl.Job{Partition: "all", MinMemory: 150}, []int{1}},
			{slurmctl.Job{Partition: "all", ExcNodes: []string{"b"}}, []int{0, 2}},
			{slurmctl.Job{Partition: "all", ReqNodes: []string{"b"}}, []int{1}},
			{slurmctl.Job{Partition: "none"}, nil},
		} {
			if got, err := s.eligible(&want.job); err != nil || !slices.Equal(got, want.nodes) {
				t.Errorf("%+v: %v, %v; want %v", want.job, got, err, want.nodes)
			}
		}
		if _, err := s.eligible(&slurmctl.Job{Partition: "all", Heterogenous: true}); err == nil {
			t.Error("a heterogeneous job is planned")
		}
		if _, err := s.eligible(&slurmctl.Job{Partition: "all", Features: "[x|y]"}); err == nil {
			t.Error("a constraint for all nodes together is planned")
		}
	}
}
