package planner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// busyFor returns nodes that are in use from now until a second.
func busyFor(end int64, nodes ...int) []NodeBusy { return reservedOn(0, end, nodes...) }

// TestTogether plans a job that wants few switches: nodes 0 to 3, 4 to 7, and 8 to 11 are on one each.
func TestTogether(t *testing.T) {
	wants := func(leaves int, patience int64, steps ...Step) PoolJob {
		return PoolJob{Job: Job{ID: "a", Profile: steps}, Driver: -1, Leaves: leaves, Patience: patience}
	}
	other := PoolJob{Job: Job{ID: "b", Profile: Profile{{Duration: 100, Nodes: 2}}}, Driver: -1}
	for _, c := range []struct {
		name         string
		pool         Pool
		start, waits int64
		nodes        []int // nil: any
	}{
		{"few switches at once", Pool{Busy: down(0, 4, 8), Jobs: []PoolJob{wants(1, 60, Step{10, 3})}}, 0, 0, nil},
		{"it waits for a node of a switch", Pool{Busy: append(down(0, 4), busyFor(50, 8)...), Jobs: []PoolJob{wants(1, 60, Step{10, 4})}}, 50, 50, []int{8, 9, 10, 11}},
		{"no longer than it may", Pool{Busy: append(down(0, 4), busyFor(50, 8)...), Jobs: []PoolJob{wants(1, 40, Step{10, 4})}}, 40, 40, nil},
		{"two switches", Pool{Busy: append(down(0, 1, 4, 5), busyFor(50, 8, 9, 10)...), Jobs: []PoolJob{wants(2, 60, Step{10, 5})}}, 50, 50, nil},
		{"two switches are free", Pool{Busy: append(down(0, 1, 4, 5), busyFor(50, 8, 9, 10)...), Jobs: []PoolJob{wants(2, 60, Step{10, 4})}}, 0, 0, nil},
		{"not until a use that would end the job", Pool{Busy: slices.Concat(down(0, 4), busyFor(50, 8), reservedOn(55, 70, 9)), Jobs: []PoolJob{wants(1, 90, Step{10, 4})}}, 70, 70, []int{8, 9, 10, 11}},
		{"a switch that another job leaves", Pool{Busy: down(0, 1, 2, 3, 4, 5), Jobs: []PoolJob{other, wants(1, 200, Step{10, 4})}}, 0, 0, nil},
		{"a step that is larger later may be elsewhere", Pool{Busy: append(down(0, 1, 4, 5), busyFor(50, 8)...), Jobs: []PoolJob{wants(1, 60, Step{10, 2}, Step{10, 6})}}, 0, 0, nil},
		{"it never waits with no patience", Pool{Busy: append(down(0, 4), busyFor(50, 8)...), Jobs: []PoolJob{wants(1, 0, Step{10, 4})}}, 0, 0, nil},
		{"the wait begins when it could start", Pool{Busy: slices.Concat(down(0, 4), busyFor(20, 1, 2, 3, 5, 6, 7), busyFor(50, 8)), Jobs: []PoolJob{wants(1, 40, Step{10, 4})}}, 50, 30, []int{8, 9, 10, 11}},
	} {
		for _, strategy := range []Strategy{mustStrategy(t, "noX"), &oncePerPool{Strategy: mustStrategy(t, "noX")}} {
			t.Run(c.name, func(t *testing.T) {
				p := c.pool
				p.Nodes, p.Switches = 12, twoLevels(4, 4, 4)
				got, last, err := p.PlanAgain(strategy, 1000, nil)
				if err != nil {
					t.Fatal(err)
				}
				job := len(p.Jobs) - 1
				if got := got[job]; got.Start != c.start || got.Waits != c.waits || c.nodes != nil && !slices.Equal(got.Nodes[0], c.nodes) {
					t.Errorf("%+v", got)
				}
				if once, ok := strategy.(*oncePerPool); ok && once.calls != 1 {
					t.Errorf("%d calls of a strategy that must be called once", once.calls)
				}
				if again, _, _ := p.PlanAgain(strategy, 1000, last); again[job].Start != c.start || again[job].Waits != c.waits {
					t.Errorf("planned again: %+v", again[job])
				}
			})
		}
	}
}

// oncePerPool is a strategy that should be called once.
type oncePerPool struct {
	Strategy
	calls int
}

func (o *oncePerPool) AsksOnce() bool           { return true }
func (o *oncePerPool) ExpandLimit() ExpandLimit { return ExpandLimitOf(o.Strategy) }
func (o *oncePerPool) Plan(p Problem) (Schedule, error) {
	o.calls++
	return o.Strategy.Plan(p)
}

// TestTogetherOrWaited checks in random pools that a job starts on as many switches as it wants, or has waited for that as
// long as it may, and that the others fit.
func TestTogetherOrWaited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pool{Nodes: 12, Switches: twoLevels(3, 4, 5)}
		for n := range p.Nodes {
			if until := rapid.Int64Range(0, 100).Draw(t, "busy"); until > 30 {
				p.Busy = append(p.Busy, busyFor(until, n)...)
			}
		}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			profile := Profile{{rapid.Int64Range(1, 50).Draw(t, "lasts"), rapid.IntRange(1, 6).Draw(t, "nodes")}, {10, rapid.IntRange(1, 6).Draw(t, "later")}}
			p.Jobs = append(p.Jobs, PoolJob{Job: Job{ID: string(rune('a' + i)), Profile: profile}, Driver: Lowest,
				Leaves: rapid.IntRange(0, 2).Draw(t, "leaves"), Patience: rapid.Int64Range(0, 80).Draw(t, "patience")})
		}
		strategy, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "infX", "2X+c", "rigid"}).Draw(t, "strategy"))
		if rapid.Bool().Draw(t, "once") && !IsRigid(strategy) {
			strategy = &oncePerPool{Strategy: strategy}
		}
		planned, err := p.Plan(strategy)
		if err != nil {
			t.Fatal(err)
		}
		for j, one := range planned {
			if p.scattered(j, one) && one.Waits < p.Jobs[j].Patience {
				t.Fatalf("job %d begins on %d switches at %d, after %d of %d seconds", j, p.Switches.leaves(one.Nodes[0]), one.Start, one.Waits, p.Jobs[j].Patience)
			}
			if one.Unfit != "" {
				t.Fatalf("job %d: %s", j, one.Unfit)
			}
		}
	})
}
