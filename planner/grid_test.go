package planner

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGridChangesNothing: long queues get the same plan with the grid as without,
// whatever their durations, node counts, limits, submissions and busy nodes.
func TestGridChangesNothing(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := Problem{Nodes: 1 + random.IntN(1<<random.IntN(21))}
		longest := int64(1) << (1 + random.IntN(20))
		spread := int64(1) << random.IntN(24)
		for range random.IntN(20) {
			p.Busy = append(p.Busy, Busy{random.Int64N(spread), 1 + random.Int64N(10*longest), random.IntN(p.Nodes/20 + 1)})
		}
		if random.IntN(3) == 0 {
			p.Busy = append(p.Busy, Busy{random.Int64N(spread), Forever, p.Nodes / 10})
		}
		origin := int64(0)
		if seed%3 == 1 {
			origin = -random.Int64N(1 << 30)
		}
		for range 10 + random.IntN(300) {
			j := Job{Submit: origin + random.Int64N(spread)/(1+random.Int64N(3))}
			for range 1 + random.IntN(8) {
				j.Profile = append(j.Profile, Step{1 + random.Int64N(longest), 1 + random.IntN(p.Nodes*9/10+1)*9/10})
			}
			if random.IntN(10) == 0 {
				j.ExpandLimit = ExpandLimit(1 + random.IntN(3))
			}
			p.Jobs = append(p.Jobs, j)
		}
		for i := range p.Jobs {
			for k := range p.Jobs[i].Profile {
				p.Jobs[i].Profile[k].Nodes = max(min(p.Jobs[i].Profile[k].Nodes, p.Nodes-p.Nodes/10), 1)
			}
		}
		for _, name := range append(PaperStrategies(), "1.3X+c") {
			fast := mustStrategy(t, name).(list)
			slow := fast
			slow.plain = true
			got, errGot := fast.Plan(p)
			want, errWant := slow.Plan(p)
			if !cmp.Equal(errGot, errWant) || !cmp.Equal(got, want) {
				t.Fatalf("seed %d, %s: %v, %v (-want +got):\n%.4000s", seed, name, errWant, errGot, cmp.Diff(want, got))
			}
		}
	}
}

// TestGridLayers holds every layer to its definition, after adds and removals.
func TestGridLayers(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		capacity := 1 + random.IntN(100)
		res := new(Timeline)
		g := newGrid(res, capacity, 0, 1<<random.IntN(6))
		var placed []Placement
		for range 200 {
			if len(placed) > 0 && random.IntN(3) == 0 {
				i := random.IntN(len(placed))
				p := placed[i]
				placed = slices.Delete(placed, i, i+1)
				res.RemovePlacement(p)
				g.update(p.Start, p.End())
				continue
			}
			p := Placement{Start: random.Int64N(20_000), Steps: Profile{{1 + random.Int64N(500), random.IntN(capacity/3 + 1)}}}
			placed = append(placed, p)
			res.AddPlacement(p)
			g.update(p.Start, p.End())
		}
		free := func(c int) int {
			if c >= g.cells {
				return gridLevels
			}
			return g.levelOf(capacity - res.Max(g.start(int64(c)), g.start(int64(c+1))))
		}
		for k := range g.layers {
			for j, run := range []int{1, 4, 8} {
				l := &g.layers[k][j]
				cleared := 0
				for c := range g.cells {
					want := true
					for i := range run {
						want = want && free(c+i) >= k
					}
					if got := l.words[c/64]>>(c%64)&1 == 1; got != want {
						t.Fatalf("seed %d: level %d, run %d, cell %d: %v", seed, k, run, c, got)
					}
				}
				for group := range g.cells / groupCells {
					near := ahead(l.words, group*groupCells)&(1<<(2*groupCells)-1) != 0
					if got := l.near[group/64]>>(group%64)&1 == 1; got != near {
						t.Fatalf("seed %d: level %d, run %d, group %d of %d: %v", seed, k, run, group, g.cells/groupCells, got)
					}
					if !near {
						cleared++
					}
				}
				if l.cleared != cleared {
					t.Fatalf("seed %d: level %d, run %d: %d groups cleared, counted %d", seed, k, run, cleared, l.cleared)
				}
			}
		}
	}
}
