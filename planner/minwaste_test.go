package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
)

// TestMinWasteIsLeast compares with every valid placement of small random cases, the same in every
// run.
func TestMinWasteIsLeast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(low, high int) int { return low + random.IntN(high-low+1) }
	wasteful, better := 0, 0
	for n := range 25_000 {
		const seconds = 36
		capacity := draw(3, 9)
		naive := make(naive.Timeline, seconds+40)
		res := new(Timeline)
		for range draw(6, 16) {
			start := int64(draw(0, seconds-2))
			end, nodes := start+int64(draw(1, 6)), draw(1, capacity)
			if naive.Free(start, end, nodes, capacity) {
				naive.Add(start, end, nodes)
				res.Add(start, end, nodes)
			}
		}
		p := make(Profile, draw(3, 6))
		for i := range p {
			p[i] = Step{int64(draw(1, 3)), draw(1, capacity)}
		}
		o := FitOptions{NotBefore: int64(draw(0, 6)), Limit: []ExpandLimit{1.5, 2, 3, 5, Infinite}[draw(0, 4)], Fixed: draw(0, 4) == 0}
		if draw(0, 3) == 0 {
			for range p {
				o.MaxDuration = append(o.MaxDuration, int64(draw(0, 9)))
			}
		}
		got, ok := FitMinWaste(res, capacity, p, o)
		base, baseOK := Fit(res, capacity, p, o)
		if ok != baseOK {
			t.Fatalf("case %d: fits: %v, without less waste: %v", n, ok, baseOK)
		}
		if !ok {
			continue
		}
		if got.End() != base.End() {
			t.Fatalf("case %d: completes at %d, the earliest is %d", n, got.End(), base.End())
		}
		starts := got.Boundaries()[:len(p)]
		least, latest, valid := int64(math.MaxInt64), int64(0), false
		for _, fit := range naiveFits(naive, capacity, p, o, got.End()) {
			if waste := naiveWaste(p, fit); waste < least {
				least, latest = waste, fit[0]
			} else if waste == least {
				latest = max(latest, fit[0])
			}
			valid = valid || slices.Equal(fit, starts)
		}
		if !valid {
			t.Fatalf("case %d: %v over %v is not valid", n, got, res.Steps())
		}
		if waste := naiveWaste(p, starts); waste != least || starts[0] != latest {
			t.Fatalf("case %d: %v over %v wastes %d node-seconds from %d on, %d from %d on will do", n, got, res.Steps(), waste, starts[0], least, latest)
		}
		o.Compact = true
		compact, _ := Fit(res, capacity, p, o)
		if least > 0 {
			wasteful++
		}
		if naiveWaste(p, compact.Boundaries()[:len(p)]) > least {
			better++
		}
	}
	if wasteful < 1000 || better < 50 {
		t.Errorf("%d cases need waste, %d are better than compacting: too easy", wasteful, better)
	}
	t.Logf("%d cases need waste, %d are better than compacting", wasteful, better)
}

// TestMinWasteHuge checks that compacting is used if the waste might not fit 64 bits.
func TestMinWasteHuge(t *testing.T) {
	var res Timeline
	res.Add(1<<40, 1<<50, MaxNodes)
	res.Add(1<<51, 1<<52, MaxNodes-1)
	p := Profile{{MaxDuration, 1}, {MaxDuration, MaxNodes}, {MaxDuration, 1}, {MaxDuration, 2}}
	for _, limit := range []ExpandLimit{1, 2, Infinite} {
		got, ok := FitMinWaste(&res, MaxNodes, p, FitOptions{Limit: limit})
		base, baseOK := Fit(&res, MaxNodes, p, FitOptions{Limit: limit})
		if ok != baseOK || got.End() != base.End() {
			t.Errorf("limit %v: ends at %d, the earliest is %d", limit, got.End(), base.End())
		}
	}
}

func FuzzMinWaste(f *testing.F) {
	f.Add([]byte{3, 5, 2, 8, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(most int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			return b % most
		}
		capacity := 1 + next(20)
		var res Timeline
		for range next(12) {
			start, duration := int64(next(200)), int64(1+next(60))
			if nodes := 1 + next(capacity); res.Max(start, start+duration)+nodes <= capacity {
				res.Add(start, start+duration, nodes)
			}
		}
		p := make(Profile, 1+next(10))
		for i := range p {
			p[i] = Step{int64(1 + next(20)), 1 + next(capacity)}
		}
		o := FitOptions{Limit: []ExpandLimit{1, 1.5, 2, 4, Infinite}[next(5)], NotBefore: int64(next(50))}
		got, ok := FitMinWaste(&res, capacity, p, o)
		if !ok {
			t.Fatal("does not fit a timeline with an end")
		}
		job := Job{Profile: p, Submit: o.NotBefore, ExpandLimit: o.Limit}
		if err := checkPlacement(job, got, 1); err != nil {
			t.Fatal(err)
		}
		o.Compact = true
		compact, _ := Fit(&res, capacity, p, o)
		if got.End() != compact.End() || got.Steps.Area() > compact.Steps.Area() {
			t.Fatalf("%v against compacted %v", got, compact)
		}
		res.AddPlacement(got)
		if res.Max(-1, 1<<40) > capacity {
			t.Fatalf("%v uses more than there is", got)
		}
	})
}
