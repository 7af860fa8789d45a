package planner

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// eachPlacement calls f for all placements of a pool's only job that start by second `until`: when each step starts, then the
// end, and each step's nodes as bits. No step is held beyond second 12.
func (p Pool) eachPlacement(until int64, f func(at []int64, nodes []uint)) {
	free := func(nodes uint, from, to int64) bool {
		return !slices.ContainsFunc(p.Busy, func(b NodeBusy) bool {
			return nodes>>b.Node&1 == 1 && b.Start < b.End && b.Start < to && b.End > from
		})
	}
	steps, limit := p.Jobs[0].Profile, p.Jobs[0].ExpandLimit
	at, nodes := make([]int64, len(steps)+1), make([]uint, len(steps))
	var place func(k int)
	place = func(k int) {
		if k == len(steps) {
			f(at, nodes)
			return
		}
		most := steps[k].Duration
		if k+1 < len(steps) {
			most = max(most, min(limit.Stretch(most), 12-at[k]))
		}
		for has := uint(1); has < 1<<p.Nodes; has++ {
			if bits.OnesCount(has) != steps[k].Nodes || k > 0 && has&nodes[k-1] != has && has&nodes[k-1] != nodes[k-1] {
				continue
			}
			for held := steps[k].Duration; held <= most && free(has, at[k], at[k]+held); held++ {
				nodes[k], at[k+1] = has, at[k]+held
				place(k + 1)
			}
		}
	}
	for at[0] = p.Jobs[0].Submit; at[0] <= until; at[0]++ {
		place(0)
	}
}

// leavesOf counts the switches of some nodes, two nodes on each.
func leavesOf(nodes uint) int64 { return int64(min(nodes&3, 1) + min(nodes>>2, 1)) }

// smallPools returns two nodes, each busy for any time until second 4, and four nodes of two switches, busy from second 0 on.
func smallPools() (pools []Pool) {
	for a := range int64(4) {
		for b := a; b <= 4; b++ {
			for x := range int64(4) {
				for y := x; y <= 4; y++ {
					pools = append(pools, Pool{Nodes: 2, Busy: []NodeBusy{{0, a, b}, {1, x, y}}})
				}
			}
		}
	}
	for ends := range int64(256) {
		pool := Pool{Nodes: 4, Switches: twoLevels(2, 2)}
		for n := range 4 {
			pool.Busy = append(pool.Busy, NodeBusy{n, 0, ends >> (2 * n) & 3})
		}
		pools = append(pools, pool)
	}
	return pools
}

// TestAimExhaustive compares an aim with all placements.
func TestAimExhaustive(t *testing.T) {
	found := map[Aim]int{}
	for _, p := range smallPools() {
		for _, profile := range []Profile{{{1, 1}, {1, 2}}, {{2, 1}, {1, 2}}, {{1, 2}, {2, 1}}, {{2, 2}, {1, 2}}, {{1, 2}, {1, 1}, {1, 2}}, {{1, 1}, {2, 1}, {1, 2}}} {
			for _, limit := range []ExpandLimit{1, 2, Infinite} {
				p.Jobs = []PoolJob{{Job: Job{Profile: profile, ExpandLimit: limit}, Driver: -1}}
				planned, err := p.Plan(mustStrategy(t, "noX"))
				if err != nil || planned[0].Unfit != "" {
					t.Fatal(err, planned)
				}
				for _, aim := range []Aim{AimStart, AimWaste, AimNear} {
					if checkAim(t, p, aim, planned[0]) {
						found[aim]++
					}
				}
			}
		}
	}
	for _, aim := range []Aim{AimStart, AimWaste, AimNear} {
		if found[aim] == 0 {
			t.Errorf("the aim %v never made a difference", aim)
		}
	}
}

// checkAim checks an aim against all placements, and reports whether it moved the job.
func checkAim(t *testing.T, p Pool, aim Aim, planned Planned) bool {
	const wait = 3
	until := planned.Start + wait
	work := math.MaxInt
	best, found, err := p.Aim(aim, planned, until, &work)
	if err != nil {
		t.Fatal(err)
	}
	least, is, valid := Forever, p.AimCost(aim, best), false
	p.eachPlacement(until, func(at []int64, nodes []uint) {
		cost, same := int64(0), at[len(nodes)] == best.End()
		for k, has := range nodes {
			same = same && at[k+1]-at[k] == best.Steps[k].Duration && asBits(best.Nodes[k]) == has
			switch {
			case aim == AimWaste:
				cost += (at[k+1] - at[k] - p.Jobs[0].Profile[k].Duration) * int64(bits.OnesCount(has))
			case aim == AimNear && p.Switches != nil:
				cost += leavesOf(has)
			}
		}
		if aim == AimStart {
			cost = at[0]
		}
		least, valid = min(least, cost), valid || same
	})
	if !valid || is > p.AimCost(aim, planned) || found != (is < p.AimCost(aim, planned) || best.Start < planned.Start) {
		t.Fatalf("%v: %+v\n became %+v", aim, planned, best)
	}
	if is != least {
		t.Fatalf("%v of %v, limit %v, with %v costs %d, %d is possible: %+v", aim, p.Jobs[0].Profile, p.Jobs[0].ExpandLimit, p.Busy, is, least, best)
	}
	return found
}

func asBits(nodes []int) (all uint) {
	for _, n := range nodes {
		all |= 1 << n
	}
	return all
}

// aimAgain places the job of a pool again, with any amount of work, and checks the result.
func aimAgain(t *rapid.T, p Pool, aim Aim, planned Planned, until int64) (best Planned, found bool) {
	work := rapid.SampledFrom([]int{0, 100, 1000, math.MaxInt}).Draw(t, "work")
	left := work
	best, found, err := p.Aim(aim, planned, until, &left)
	if err != nil {
		t.Fatal(err)
	}
	if work == 0 && found {
		t.Fatalf("without work, %+v became %+v", planned, best)
	}
	again, _, _ := p.Aim(aim, planned, until, &work)
	was, is := p.AimCost(aim, planned), p.AimCost(aim, best)
	if found && (is > was || is == was && best.Start >= planned.Start) || !found && !cmp.Equal(best, planned) || best.Start > until || best.Start < p.Jobs[0].Submit || !cmp.Equal(again, best) {
		t.Fatalf("%v until %d: %+v\n became %+v (%d, %d)", aim, until, planned, best, was, is)
	}
	return best, found
}

// drawWaiting returns a pool of waiting jobs, perhaps with a reservation.
func drawWaiting(t *rapid.T) Pool {
	p := drawPool(t)
	p.Jobs = slices.DeleteFunc(p.Jobs, func(j PoolJob) bool { return j.Fixed })
	for i := range p.Jobs {
		p.Jobs[i].Limits = []int64{rapid.Int64Range(20, 60).Draw(t, "limit")}
		if p.Jobs[i].ExpandLimit == 0 {
			p.Jobs[i].ExpandLimit = 1
		}
	}
	if rapid.Bool().Draw(t, "reserved") {
		p.Reserved = reservedOn(30, 60, rapid.IntRange(0, p.Nodes-1).Draw(t, "reserved node"))
	}
	return p
}

// asMapped returns the planned jobs as mapping has them.
func asMapped(jobs []PoolJob, all []Planned) (mapped []MappedJob, nodes [][][]int) {
	for i, job := range jobs {
		if all[i].Unfit == "" {
			if job.Driver == Lowest {
				job.Driver = slices.Min(all[i].Nodes[0])
			}
			mapped, nodes = append(mapped, MappedJob{Placement: all[i].Placement, Driver: job.Driver}), append(nodes, all[i].Nodes)
		}
	}
	return mapped, nodes
}

// TestAimMovesNobody places the jobs of random pools again, one by one, and checks that all keep their conditions, that no job
// starts after its time or at a higher cost, and that a job without a better placement stays where it is.
func TestAimMovesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawWaiting(t)
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "2X", "infX+c", "search"}).Draw(t, "strategy"))
		all, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		for i, job := range p.Jobs {
			if all[i].Unfit != "" {
				continue
			}
			alone := p
			alone.Jobs, alone.Reserved = []PoolJob{job}, p.Reserved
			alone.Busy = slices.Concat(p.Busy, Pool{Jobs: p.Jobs}.inUse(i, all))
			aim := rapid.SampledFrom([]Aim{AimStart, AimWaste, AimNear}).Draw(t, "aim")
			until := all[i].Start + rapid.Int64Range(0, 20).Draw(t, "wait")
			best, found := aimAgain(t, alone, aim, all[i], until)
			if all[i] = best; !found {
				continue
			}
			if err := checkPlacement(job.Job, best.Placement, job.ExpandLimit); err != nil {
				t.Fatalf("C1: job %d: %v", i, err)
			}
		}
		mapped, nodes := asMapped(p.Jobs, all)
		checkMapping(t, p.Nodes, p.Busy, mapped, nodes)
	})
}

// TestAims: every aim has a name that can be read.
func TestAims(t *testing.T) {
	for _, name := range Aims() {
		if aim, err := ParseAim(name); err != nil || aim.String() != name {
			t.Errorf("%q: %v, %v", name, aim, err)
		}
	}
	if _, err := ParseAim("far"); err == nil || NoAim.String() != "" {
		t.Error("a wrong aim has a name")
	}
}
