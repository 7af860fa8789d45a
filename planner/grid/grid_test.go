package grid

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// TestGridLayers checks every layer against its definition, after adds and removals.
func TestGridLayers(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		capacity := 1 + random.IntN(100)
		res := new(timeline.Timeline)
		g := new(Grid)
		g.Reset(res, capacity, 0, 1<<random.IntN(6), nil)
		var placed []profile.Placement
		for range 200 {
			if len(placed) > 0 && random.IntN(3) == 0 {
				i := random.IntN(len(placed))
				p := placed[i]
				placed = slices.Delete(placed, i, i+1)
				res.RemovePlacement(p)
				g.Update(p.Start, p.End())
				continue
			}
			p := profile.Placement{Start: random.Int64N(20_000), Steps: profile.Profile{{1 + random.Int64N(500), random.IntN(capacity/3 + 1)}}}
			placed = append(placed, p)
			res.AddPlacement(p)
			g.Update(p.Start, p.End())
		}
		free := func(c int) int {
			if c >= g.cells {
				return gridLevels
			}
			return g.levelOf(capacity - res.Max(g.start(int64(c)), g.start(int64(c+1))))
		}
		for c, got := range g.free {
			want := uint8(gridUnknown)
			for s := g.start(int64(c)); s < g.start(int64(c+1)); s++ {
				want = min(want, gridUnknown&^gridShades|g.shade(capacity-res.At(s)))
			}
			if got != want {
				t.Fatalf("seed %d: cell %d: shade %d, want %d", seed, c, got, want)
			}
		}
		for k := range g.layers {
			for j, run := range []int{1, 2, 4, 8, 16, 32} {
				l := &g.layers[k][j]
				cleared := 0
				for c := range g.cells {
					want := true
					for i := range run {
						want = want && free(c+i) >= k
					}
					if !want {
						cleared++
					}
					if got := l.words[c/64]>>(c%64)&1 == 1; got != want {
						t.Fatalf("seed %d: level %d, run %d, cell %d: %v", seed, k, run, c, got)
					}
				}
				if l.cleared != cleared {
					t.Fatalf("seed %d: level %d, run %d: %d cells cleared, counted %d", seed, k, run, cleared, l.cleared)
				}
			}
		}
	}
}
