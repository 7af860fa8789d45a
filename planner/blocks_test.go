package planner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// inBlocksOf returns blocks with as many nodes each, and some nodes outside of all.
func inBlocksOf(size int, levels []int, outside int, nodes ...int) *Switches {
	s := &Switches{Above: slices.Repeat([]int{-1}, len(nodes)+1), Blocks: &Blocks{Count: len(nodes), Size: size, Levels: levels}}
	for leaf, n := range append(slices.Clone(nodes), outside) {
		s.Leaf = append(s.Leaf, slices.Repeat([]int{leaf}, n)...)
	}
	return s
}

func TestBlocksAccept(t *testing.T) {
	all := &Blocks{Count: 8, Size: 4, Levels: []int{1, 2, 4, 8}}
	few := &Blocks{Count: 8, Size: 4, Levels: []int{1, 4}}
	large := &Blocks{Count: 6, Size: 4, Levels: []int{1, 4}}
	pairs := &Blocks{Count: 6, Size: 4, Levels: []int{1, 2}}
	for _, c := range []struct {
		blocks *Blocks
		leaves []int
		want   bool
	}{
		{all, []int{0, 0, 0}, true},
		{all, []int{0, 0, 1}, false},
		{all, []int{0, 0, 0, 1, 1}, true},
		{all, []int{1, 1, 1, 2, 2}, false}, // neighbours, but not in one larger block
		{few, []int{1, 1, 1, 2, 2}, true},
		{few, []int{1, 1, 2, 2, 3}, false}, // five nodes fill two blocks
		{few, []int{3, 3, 3, 4, 4}, false},
		{all, []int{0, 0, 0, 1, 1, 2, 2, 3, 3}, true},
		{all, []int{8, 8, 8, 8, 8}, true},
		{all, []int{0, 8}, false},
		{all, []int{8, 0}, false},
		{large, slices.Concat(slices.Repeat([]int{1, 2, 3}, 4), slices.Repeat([]int{4}, 3), slices.Repeat([]int{5}, 3)), false}, // Slurm forgets blocks 4 and 5
		{large, slices.Concat(slices.Repeat([]int{0, 1, 2, 3}, 4), []int{4, 4}), false},
		{large, slices.Concat(slices.Repeat([]int{0, 1, 2, 3}, 4), []int{0, 2}), true},
		{pairs, slices.Concat(slices.Repeat([]int{0, 2, 3}, 3)), true},                           // from blocks 2 and 3
		{pairs, slices.Concat(slices.Repeat([]int{0}, 5), slices.Repeat([]int{2, 3}, 2)), false}, // Slurm ends at block 1
		{pairs, slices.Concat(slices.Repeat([]int{0, 2}, 5)), false},
		{pairs, slices.Concat(slices.Repeat([]int{2}, 4), slices.Repeat([]int{4, 5}, 2), []int{4}), true},
		{pairs, []int{0, 0, 0, 0, 0, 4, 4, 4, 5, 5}, false}, // of equals, from the one with the largest base block
		{pairs, []int{0, 0, 0, 1, 1, 4, 4, 4, 4, 4}, false},
		{pairs, slices.Concat(slices.Repeat([]int{0}, 6), slices.Repeat([]int{4, 5}, 3)), false},
	} {
		nodes := make([]int, len(c.leaves))
		for n := range nodes {
			nodes[n] = n
		}
		if got := (&Switches{Leaf: c.leaves, Blocks: c.blocks}).accepts(nodes); got != c.want {
			t.Errorf("%v on %+v: %v", c.leaves, c.blocks, got)
		}
	}
	differ := &Switches{Leaf: slices.Repeat([]int{0, 2, 3}, 3), Blocks: pairs, Weight: []int{7, 1, 1, 1, 1, 1, 1, 1, 1}}
	if differ.accepts([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}) { // Slurm may begin at block 0, and ends at block 1
		t.Error("nodes of different weights beside an empty block")
	}
}

// TestBlocks plans jobs on three blocks of four nodes.
func TestBlocks(t *testing.T) {
	waits := func(steps ...Step) PoolJob { return PoolJob{Job: Job{ID: "a", Profile: steps}, Driver: -1} }
	for _, c := range []struct {
		name  string
		busy  []NodeBusy
		job   PoolJob
		start int64
		nodes []int
		unfit bool
	}{
		{"the tightest block", down(0, 1, 4), waits(Step{10, 2}), 0, []int{2, 3}, false},
		{"where its growth fits too", down(0, 1, 4), waits(Step{10, 2}, Step{10, 3}), 0, []int{5, 6}, false},
		{"not on two blocks of two", slices.Concat(down(0, 1, 4, 5), busyFor(50, 8, 9)), waits(Step{10, 3}), 50, []int{8, 9, 10}, false},
		{"a job of five on the first two", down(0, 4), waits(Step{10, 5}), 0, []int{1, 2, 3, 5, 6}, false},
		{"not on the last two", slices.Concat(down(0, 1), busyFor(70, 2)), waits(Step{10, 6}), 70, []int{2, 3, 4, 5, 6, 7}, false},
		{"nowhere", down(0, 1, 4, 5, 8, 9), waits(Step{10, 3}), 0, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Pool{Nodes: 12, Switches: inBlocksOf(4, []int{1, 2, 4}, 0, 4, 4, 4), Busy: c.busy, Jobs: []PoolJob{c.job}}
			got, err := p.Plan(mustStrategy(t, "noX"))
			if err != nil {
				t.Fatal(err)
			}
			if one := got[0]; (one.Unfit != "") != c.unfit || !c.unfit && (one.Start != c.start || !slices.Equal(one.Nodes[0], c.nodes)) {
				t.Errorf("%+v", one)
			}
		})
	}
}

// TestBlocksAlways checks in random pools that a job starts only where Slurm accepts it, or not at all.
func TestBlocksAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pool{Nodes: 17, Switches: inBlocksOf(3, rapid.SampledFrom([][]int{{1}, {1, 2}, {1, 4}, {1, 2, 4}}).Draw(t, "levels"), 0, 3, 4, 3, 3, 4)}
		for n := range p.Nodes {
			if until := rapid.Int64Range(0, 100).Draw(t, "busy"); until > 30 {
				p.Busy = append(p.Busy, busyFor(until, n)...)
			}
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			profile := Profile{{rapid.Int64Range(1, 50).Draw(t, "lasts"), rapid.IntRange(1, 9).Draw(t, "nodes")}, {10, rapid.IntRange(1, 6).Draw(t, "later")}}
			p.Jobs = append(p.Jobs, PoolJob{Job: Job{ID: string(rune('a' + i)), Profile: profile}, Driver: Lowest, Others: rapid.IntRange(0, 4).Draw(t, "others") == 0})
		}
		strategy, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "infX", "rigid"}).Draw(t, "strategy"))
		planned, err := p.Plan(strategy)
		if err != nil {
			t.Fatal(err)
		}
		for j, one := range planned {
			if p.scattered(j, one) {
				t.Fatalf("job %d starts on %v", j, one.Nodes[0])
			}
		}
	})
}

// TestStarts checks that Slurm starts no job of five on blocks of two, one, and two nodes, where one node of a block counts.
func TestStarts(t *testing.T) {
	s := inBlocksOf(1, []int{1, 2, 4}, 0, 2, 1, 2)
	var starts []int
	for n := range 7 {
		if n > 0 && s.Starts([]int{0, 1, 2, 3, 4}, n) {
			starts = append(starts, n)
		}
	}
	if want := []int{1, 2, 3, 4}; !slices.Equal(starts, want) {
		t.Errorf("starts %v, want %v", starts, want)
	}
}
