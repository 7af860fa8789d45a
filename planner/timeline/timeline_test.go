package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// TestTimelineReference compares every query with the second-by-second reference.
func TestTimelineReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const length = 64
		naive, fast := make(naive.Timeline, length), new(Timeline)
		second := rapid.Int64Range(0, length)
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			a, b := second.Draw(t, "a"), second.Draw(t, "b")
			nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
			switch rapid.IntRange(0, 6).Draw(t, "operation") {
			case 0, 1, 2:
				naive.Add(a, b, nodes)
				fast.Add(a, b, nodes)
			case 3:
				naive.Add(a, b, -nodes)
				fast.Remove(a, b, nodes)
			case 4:
				fast = fast.Clone()
			}
			checkTimeline(t, naive, fast, a, b, nodes)
		}
	})
}

func checkTimeline(t *rapid.T, naive naive.Timeline, fast *Timeline, a, b int64, nodes int) {
	length := int64(len(naive))
	for s := range length + 2 {
		if got := fast.At(s - 1); got != naive.At(s-1) {
			t.Fatalf("At(%d) = %d, want %d", s-1, got, naive.At(s-1))
		}
	}
	wantMax, wantLoc := 0, a
	for s := a; s < b; s++ {
		if n := naive.At(s); s == a || n >= wantMax {
			wantMax, wantLoc = n, s+1
		}
	}
	if got := fast.Max(a, b); got != wantMax {
		t.Fatalf("Max(%d, %d) = %d, want %d", a, b, got, wantMax)
	}
	if got := fast.Loc(a, b); got != wantLoc {
		t.Fatalf("Loc(%d, %d) = %d, want %d", a, b, got, wantLoc)
	}
	for capacity := range 8 {
		want := a
		for !naive.Free(want, want+b, nodes, capacity) && want <= length {
			want++
		}
		if want > length {
			want = exact.Forever
		}
		if got := fast.EarliestFree(a, nodes, b, capacity); b > 0 && got != want {
			t.Fatalf("EarliestFree(%d, %d, %d, %d) = %d, want %d", a, nodes, b, capacity, got, want)
		}
		first, last := exact.Forever, a
		for s := a; s < b; s++ {
			if naive.At(s) > capacity {
				first, last = min(first, s), s+1
			}
		}
		if got := fast.FirstAbove(a, b, capacity); got != first {
			t.Fatalf("firstAbove(%d, %d, %d) = %d, want %d", a, b, capacity, got, first)
		}
		if got := fast.LastAbove(a, b, capacity); got != last {
			t.Fatalf("lastAbove(%d, %d, %d) = %d, want %d", a, b, capacity, got, last)
		}
	}
	checkSteps(t, fast)
}

// checkSteps: spans are in order, disjoint, not empty, and not to be joined.
func checkSteps(t *rapid.T, fast *Timeline) {
	steps := fast.Steps()
	for i, s := range steps {
		if s.Start >= s.End || s.Nodes == 0 || i > 0 && (s.Start < steps[i-1].End || s.Start == steps[i-1].End && s.Nodes == steps[i-1].Nodes) {
			t.Fatalf("span %d of %v", i, steps)
		}
	}
}

// drawSpans draws intervals over a wide range, so that there are many of them.
func drawSpans(t *rapid.T, most int) []Span {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Span {
		start := rapid.Int64Range(0, 100_000).Draw(t, "start")
		end := start + rapid.Int64Range(1, 5_000).Draw(t, "length")
		if rapid.IntRange(0, 50).Draw(t, "forever") == 0 {
			end = exact.Forever
		}
		return Span{start, end, rapid.IntRange(1, 100).Draw(t, "nodes")}
	}), 0, most).Draw(t, "spans")
}

// TestTimelineAddRemove: what is added and removed again leaves no trace, and the
// order of adds does not matter.
func TestTimelineAddRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans, extra := drawSpans(t, 300), drawSpans(t, 300)
		var one, other Timeline
		for _, s := range spans {
			one.Add(s.Start, s.End, s.Nodes)
		}
		for _, s := range extra {
			other.Add(s.Start, s.End, s.Nodes)
		}
		for _, s := range slices.Backward(spans) {
			other.Add(s.Start, s.End, s.Nodes)
		}
		for _, s := range extra {
			other.Remove(s.Start, s.End, s.Nodes)
		}
		if !slices.Equal(one.Steps(), other.Steps()) {
			t.Fatalf("got %v, want %v", other.Steps(), one.Steps())
		}
	})
}

// FuzzTimeline reads the input as a list of adds, removes them in another order,
// and compares with the second-by-second reference on the way.
func FuzzTimeline(f *testing.F) {
	f.Add([]byte{0, 10, 3, 5, 20, 4, 0, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		naive := make(naive.Timeline, 300)
		var fast Timeline
		var spans []Span
		for ; len(data) >= 3; data = data[3:] {
			s := Span{int64(data[0]), int64(data[0]) + int64(data[1]%32), int(data[2])}
			spans = append(spans, s)
			naive.Add(s.Start, s.End, s.Nodes)
			fast.Add(s.Start, s.End, s.Nodes)
		}
		for s := range int64(300) {
			if fast.At(s) != naive.At(s) {
				t.Fatalf("At(%d) = %d, want %d", s, fast.At(s), naive.At(s))
			}
		}
		for _, s := range spans {
			want := s.Start
			for !naive.Free(want, want+9, s.Nodes, 300) {
				want++
			}
			if got := fast.EarliestFree(s.Start, s.Nodes, 9, 300); got != want {
				t.Fatalf("EarliestFree(%d, %d, 9, 300) = %d, want %d", s.Start, s.Nodes, got, want)
			}
		}
		for _, s := range spans {
			fast.Remove(s.Start, s.End, s.Nodes)
		}
		if left := fast.Steps(); len(left) > 0 {
			t.Fatalf("left over: %v", left)
		}
	})
}

// TestTimelineLarge compares the tree, several levels deep, with a flat array:
// adds, removals, whole placements and every query.
func TestTimelineLarge(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 0))
		tree, flat := new(Timeline), new(flatTimeline)
		const length = 1_000_000
		draw := func() (start, end int64) {
			start = random.Int64N(length)
			return start, start + 1 + random.Int64N(1<<random.IntN(18))
		}
		var placements []profile.Placement
		for operation := range 20_000 {
			start, end := draw()
			nodes := 1 + random.IntN(20)
			switch k := random.IntN(100); {
			case k < 40:
				tree.Add(start, end, nodes)
				flat.Add(start, end, nodes)
			case k < 75:
				p := profile.Placement{Start: start}
				for range 1 + random.IntN(6) {
					p.Steps = append(p.Steps, profile.Step{1 + random.Int64N(2000), 1 + random.IntN(5)})
				}
				placements = append(placements, p)
				tree.AddPlacement(p)
				flat.addPlacement(p, 1)
			case k < 95 && len(placements) > 0:
				i := random.IntN(len(placements))
				p := placements[i]
				placements = slices.Delete(placements, i, i+1)
				tree.RemovePlacement(p)
				flat.addPlacement(p, -1)
			case k == 95:
				tree = tree.Clone()
			}
			start, end = draw()
			limit, duration := random.IntN(200)-10, end-start
			for name, got := range map[string][2]int64{
				"At":           {int64(tree.At(start)), int64(flat.At(start))},
				"Max":          {int64(tree.Max(start, end)), int64(flat.Max(start, end))},
				"Loc":          {tree.Loc(start, end), flat.Loc(start, end)},
				"EarliestFree": {tree.EarliestFree(start, nodes, duration, limit), flat.EarliestFree(start, nodes, duration, limit)},
				"firstAbove":   {tree.FirstAbove(start, end, limit), flat.FirstAbove(start, end, limit)},
				"lastAbove":    {tree.LastAbove(start, end, limit), flat.LastAbove(start, end, limit)},
			} {
				if got[0] != got[1] {
					t.Fatalf("seed %d, operation %d: %s(%d, %d), limit %d: got %d, want %d", seed, operation, name, start, end, limit, got[0], got[1])
				}
			}
		}
		if tree.height < 2 {
			t.Errorf("the tree has height %d only", tree.height)
		}
		want := new(Timeline)
		for _, s := range flat.Steps() {
			want.Add(s.Start, s.End, s.Nodes)
		}
		if !slices.Equal(tree.Steps(), want.Steps()) {
			t.Errorf("seed %d: the steps differ in the end", seed)
		}
		for _, p := range placements {
			tree.RemovePlacement(p)
		}
		if used := len(tree.leaves); used > 9+tree.changes/(leafSize/8) {
			t.Errorf("%d leaves for %d changes", used, tree.changes)
		}
	}
}

func (t *flatTimeline) addPlacement(p profile.Placement, sign int) {
	at := p.Start
	for _, s := range p.Steps {
		t.Add(at, at+s.Duration, sign*s.Nodes)
		at += s.Duration
	}
}

// TestTimelineAsOne: steps without a gap fit where asOne says so, and nowhere before
// the second that it gives else.
func TestTimelineAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 6
		naive, res := make(naive.Timeline, 400), new(Timeline)
		for range rapid.IntRange(0, 150).Draw(t, "busy") {
			start := rapid.Int64Range(0, 300).Draw(t, "start")
			end := start + rapid.Int64Range(1, 12).Draw(t, "duration")
			nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
			naive.Add(start, end, nodes)
			res.Add(start, end, nodes)
		}
		p := drawProfile(t, 5, 9, capacity)
		start := rapid.Int64Range(0, 320).Draw(t, "from")
		fits := func(at int64) bool {
			for _, s := range p {
				if !naive.Free(at, at+s.Duration, s.Nodes, capacity) {
					return false
				}
				at += s.Duration
			}
			return true
		}
		got := res.AsOne(p, start, capacity)
		if (got == start) != fits(start) || got < start {
			t.Fatalf("%v from %d: %d, fits: %v", p, start, got, fits(start))
		}
		for at := start; at < got; at++ {
			if fits(at) {
				t.Fatalf("%v from %d: %d, but %d is possible", p, start, got, at)
			}
		}
	})
}

// TestTimelineAllocates: queries and changes of a timeline allocate nothing once its
// memory is large enough.
func TestTimelineAllocates(t *testing.T) {
	res := new(Timeline)
	at := func(i int) int64 { return int64(i) * 7919 % 5_000_000 }
	for i := range 10_000 {
		res.Add(at(i), at(i)+1_000, 1+i%100)
	}
	p := profile.Placement{Start: 123, Steps: profile.Profile{{100, 5}, {2_000, 3}, {50, 9}}}
	i := 0
	operations := func() {
		i++
		res.Add(at(i), at(i)+10_000, 100)
		res.Max(at(i), at(i)+100_000)
		res.Loc(at(i), at(i)+100_000)
		res.EarliestFree(at(i), 300, 1_000, 1000)
		res.AddPlacement(p)
		res.RemovePlacement(p)
		res.Remove(at(i), at(i)+10_000, 100)
	}
	for range 100 {
		operations()
	}
	if n := testing.AllocsPerRun(1000, operations); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func drawProfile(t *rapid.T, steps int, duration int64, nodes int) profile.Profile {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) profile.Step {
		return profile.Step{Duration: rapid.Int64Range(1, duration).Draw(t, "duration"), Nodes: rapid.IntRange(1, nodes).Draw(t, "nodes")}
	}), 1, steps).Draw(t, "profile")
}
