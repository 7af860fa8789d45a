package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state/statetest"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// sorter is a strategy that remembers the sets of nodes.
type sorter struct {
	statetest.Builtin
	sets []planner.NodeSet
}

func (s *sorter) Sort(sets func() []planner.NodeSet) { s.sets = sets() }

// sorted returns the sets that a strategy gets.
func sorted(b *statetest.Bench) []planner.NodeSet {
	with := &sorter{Builtin: statetest.NoX()}
	problemOf(b).Plan(with)
	return with.sets
}

// TestKinds checks how nodes are grouped for strategies.
func TestKinds(t *testing.T) {
	b := statetest.New(t, 6)
	b.Core.Topology = twoSwitches
	b.Seen.Nodes[1].Features = []string{"a", "b"}
	b.Seen.Nodes[4].Weight, b.Seen.Nodes[5].Flags = 7, "~"
	b.Core.Power.On, b.Core.Power.Saving.ResumeTimeout = true, time.Minute-state.PowerCycle
	b.StockRuns(1, "n1,n4", 5*time.Minute)
	b.Evolving(2, 5, "3@5m,1@5m", time.Hour)
	want := []planner.NodeSet{
		{Nodes: 2, Free: 1, Switches: []string{"a", "top"}},
		{Nodes: 1, Free: 1, Switches: []string{"a", "top"}, Features: []string{"a", "b"}},
		{Nodes: 1, Switches: []string{"b", "top"}},
		{Nodes: 1, Free: 1, Switches: []string{"b", "top"}, Weight: 7},
		{Nodes: 1, Free: 1, Switches: []string{"b", "top"}, Power: planner.PoweredDown, Ready: 60},
	}
	got := sorted(b)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.Seen.Nodes[0].Features = slices.Repeat([]string{"x"}, planner.MaxSetNames+1) // then it is in no set
	want = append(want[1:2:2], append([]planner.NodeSet{{Nodes: 1, Free: 1, Switches: []string{"a", "top"}}}, want[2:]...)...)
	if diff := cmp.Diff(want, sorted(b)); diff != "" {
		t.Error(diff)
	}
}

// TestKindsBounded checks that a cluster on which no two nodes are alike makes no more sets than the contract allows.
func TestKindsBounded(t *testing.T) {
	b := statetest.New(t, planner.MaxNodeSets+100)
	for i := range b.Seen.Nodes {
		b.Seen.Nodes[i].Features = []string{fmt.Sprint("f", i)}
	}
	b.Evolving(2, 5, "3@5m,1@5m", time.Hour)
	got := sorted(b)
	if err := planner.CheckNodeSets(got, len(b.Seen.Nodes)); err != nil || len(got) != planner.MaxNodeSets {
		t.Errorf("%d sets, %v", len(got), err)
	}
}

// BenchmarkKinds groups 5,000 nodes.
func BenchmarkKinds(b *testing.B) {
	names := planner.Switches{Leaf: make([]int, 5000), Above: slices.Repeat([]int{-1}, 301)}
	nodes, all := make([]slurmctl.Node, 5000), make([]int, 5000)
	for i := range nodes {
		names.Leaf[i], all[i] = i/17, i
		nodes[i] = slurmctl.Node{Name: fmt.Sprint("n", i), Features: []string{"icelake", "ib", "scratch"}, Flags: []string{"", "~"}[i%2]}
	}
	for b.Loop() {
		k := msg.Kinds{Nodes: nodes, Switches: &names, Names: make([]string, 301)}
		if sets := k.Among(all, &planner.Pool{Nodes: 5000})(); len(sets) != 590 {
			b.Fatal(len(sets))
		}
	}
}
