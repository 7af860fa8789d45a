package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// twoLevels returns switches with as many nodes as given each, below a common one.
func twoLevels(sizes ...int) *Switches {
	s := &Switches{Above: make([]int, len(sizes)+1)}
	s.Above[len(sizes)] = -1
	for leaf, size := range sizes {
		s.Above[leaf] = len(sizes)
		s.Leaf = append(s.Leaf, slices.Repeat([]int{leaf}, size)...)
	}
	return s
}

// down returns nodes that are never free.
func down(nodes ...int) []NodeBusy { return reservedOn(0, Forever, nodes...) }

// TestSwitches plans jobs on three switches: nodes 0 to 3, 4 to 7, and 8 to 11.
func TestSwitches(t *testing.T) {
	fours := twoLevels(4, 4, 4)
	waits := func(steps ...Step) PoolJob { return PoolJob{Job: Job{Profile: steps}, Driver: -1} }
	prefers := func(j PoolJob, nodes ...int) PoolJob { j.Prefer = nodes; return j }
	limited := func(j PoolJob, limit int64) PoolJob { j.Limits = []int64{limit}; return j }
	licensed := func(j PoolJob) PoolJob { j.Licenses = []LicenseNeed{{0, 1}}; return j }
	runs := PoolJob{Job: Job{Profile: Profile{{5, 2}, {10, 4}}}, Held: []int{2, 8}, Driver: 8, Fixed: true}
	for _, c := range []struct {
		name string
		pool Pool
		want [][][]int
	}{
		{"the tightest switch that fits", Pool{Busy: down(0, 4, 5), Jobs: []PoolJob{waits(Step{10, 2})}}, [][][]int{{{6, 7}}}},
		{"one switch of three", Pool{Busy: down(0, 4), Jobs: []PoolJob{waits(Step{10, 4})}}, [][][]int{{{8, 9, 10, 11}}}},
		{"one switch of three, with a licence", Pool{Busy: down(0, 4), Licenses: []License{{Total: 1}}, Jobs: []PoolJob{licensed(waits(Step{10, 4}))}}, [][][]int{{{8, 9, 10, 11}}}},
		{"two of three, the last one tight", Pool{Busy: down(0, 4, 5), Jobs: []PoolJob{waits(Step{10, 6})}}, [][][]int{{{6, 7, 8, 9, 10, 11}}}},
		{"room for the peak", Pool{Busy: down(0, 4, 5), Jobs: []PoolJob{waits(Step{10, 2}, Step{10, 4})}}, [][][]int{{{8, 9}, {8, 9, 10, 11}}}},
		{"the most room where the peak fits nowhere", Pool{Busy: down(0, 1, 4, 8, 9, 10), Jobs: []PoolJob{waits(Step{10, 1}, Step{10, 6})}},
			[][][]int{{{5}, {2, 3, 5, 6, 7, 11}}}},
		{"a growth beside what the job has", Pool{Busy: down(0, 1, 3), Jobs: []PoolJob{runs}}, [][][]int{{{2, 8}, {2, 8, 9, 10}}}},
		{"preferred nodes on as few switches", Pool{Jobs: []PoolJob{prefers(waits(Step{10, 2}), 5, 6)}}, [][][]int{{{5, 6}}}},
		{"preferred nodes on more switches", Pool{Jobs: []PoolJob{prefers(waits(Step{10, 2}), 3, 4)}}, [][][]int{{{0, 3}}}},
		{"a window that is too short", Pool{Busy: append(down(4, 5, 8, 9, 10), reservedOn(5, 90, 6)...), Jobs: []PoolJob{waits(Step{10, 2})}}, [][][]int{{{0, 1}}}},
		{"a reservation before the limit", Pool{Busy: down(4, 5, 8, 9, 10), Reserved: reservedOn(50, 90, 6), Jobs: []PoolJob{limited(waits(Step{10, 2}), 60)}}, [][][]int{{{0, 1}}}},
		{"a reservation after the limit", Pool{Busy: down(4, 5, 8, 9, 10), Reserved: reservedOn(50, 90, 6), Jobs: []PoolJob{limited(waits(Step{10, 2}), 40)}}, [][][]int{{{6, 7}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.pool.Nodes, c.pool.Switches = 12, fours
			got, err := c.pool.Plan(mustStrategy(t, "noX"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				for _, step := range c.want[i] {
					slices.Sort(step)
				}
				if diff := cmp.Diff(c.want[i], got[i].Nodes); diff != "" {
					t.Errorf("job %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestWeights checks that nodes of less weight come first, also without a topology.
func TestWeights(t *testing.T) {
	s := twoLevels(4)
	s.Weight = []int{5, 1, 5, 1}
	got, err := Pool{Nodes: 4, Switches: s, Jobs: []PoolJob{{Job: Job{Profile: Profile{{10, 1}, {10, 3}}}, Driver: -1}}}.Plan(mustStrategy(t, "noX"))
	if diff := cmp.Diff([][]int{{1}, {0, 1, 3}}, got[0].Nodes); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNearest(t *testing.T) {
	for name, s := range map[string]*Switches{"no switch": {Leaf: []int{0}}, "too few nodes": twoLevels(3), "above nowhere": {Leaf: []int{0, 0, 0, 0}, Above: []int{7}}} {
		if s.valid(4) {
			t.Errorf("%s: valid", name)
		}
	}
	// two switches of a row before one of another row
	rows := &Switches{Leaf: []int{0, 0, 1, 1, 2, 2, 3, 3}, Above: []int{4, 5, 4, 5, 6, 6, -1}}
	got, err := Pool{Nodes: 8, Switches: rows, Jobs: []PoolJob{{Job: Job{Profile: Profile{{10, 4}}}, Driver: -1}}}.Plan(mustStrategy(t, "noX"))
	if diff := cmp.Diff([][]int{{0, 1, 4, 5}}, got[0].Nodes); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func drawSwitches(t *rapid.T, nodes int) *Switches {
	leaves := rapid.IntRange(1, 4).Draw(t, "leaves")
	s := &Switches{Leaf: make([]int, nodes), Above: make([]int, leaves+1)}
	for leaf := range leaves {
		s.Above[leaf] = leaves
	}
	s.Above[leaves] = rapid.IntRange(-1, leaves).Draw(t, "top") // even in a ring
	for n := range s.Leaf {
		s.Leaf[n] = rapid.IntRange(0, leaves-1).Draw(t, "leaf")
	}
	if rapid.Bool().Draw(t, "weights") {
		s.Weight = rapid.SliceOfN(rapid.IntRange(0, 2), nodes, nodes).Draw(t, "weight")
	}
	return s
}

// TestSwitchesChangeNoTimes checks that switches decide which nodes a job has, and nothing else.
func TestSwitchesChangeNoTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		if p.Switches = nil; rapid.Bool().Draw(t, "reserved") {
			p.Reserved = reservedOn(30, 60, rapid.IntRange(0, p.Nodes-1).Draw(t, "reserved node"))
		}
		for i := range p.Jobs {
			p.Jobs[i].Limits = []int64{rapid.Int64Range(20, 60).Draw(t, "limit")}
		}
		s, _ := StrategyByName("2X+c")
		without, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		p.Switches = drawSwitches(t, p.Nodes)
		with, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range with {
			with[i].Nodes, without[i].Nodes = nil, nil
		}
		if diff := cmp.Diff(without, with); diff != "" {
			t.Fatalf("-without +with:\n%s", diff)
		}
	})
}

// TestFewestSwitches checks a job that starts now against all that is possible.
func TestFewestSwitches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 5).Draw(t, "sizes")
		p := Pool{Switches: twoLevels(sizes...)}
		p.Nodes = len(p.Switches.Leaf)
		free := slices.Clone(sizes)
		for n, leaf := range p.Switches.Leaf {
			if rapid.Bool().Draw(t, "busy") {
				p.Busy = append(p.Busy, down(n)...)
				free[leaf]--
			}
		}
		slices.Sort(free)
		count := p.Nodes - len(p.Busy)
		if count == 0 {
			return
		}
		want := rapid.IntRange(1, count).Draw(t, "want")
		p.Jobs = []PoolJob{{Job: Job{Profile: Profile{{10, want}}}, Driver: Lowest}}
		s, _ := StrategyByName("noX")
		got, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		leaves := map[int]bool{}
		for _, n := range got[0].Nodes[0] {
			leaves[p.Switches.Leaf[n]] = true
		}
		least := 0
		for i := len(free) - 1; want > 0; i-- {
			want -= free[i]
			least++
		}
		if len(leaves) != least {
			t.Fatalf("%d switches, %d suffice: %v", len(leaves), least, got[0].Nodes)
		}
	})
}

// TestSwitchesStay checks that jobs stay on the nodes of the last plan.
func TestSwitchesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		p.Busy, p.Switches = nil, drawSwitches(t, p.Nodes)
		s, _ := StrategyByName("noX")
		first, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Jobs {
			for _, nodes := range first[i].Nodes {
				p.Jobs[i].Prefer = append(slices.Clip(p.Jobs[i].Prefer), nodes...)
			}
			p.Jobs[i].Was = first[i].Nodes
		}
		again, err := p.Plan(s)
		if diff := cmp.Diff(first, again); err != nil || diff != "" {
			t.Fatalf("%v (-first +again):\n%s", err, diff)
		}
	})
}
