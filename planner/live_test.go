package planner

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLive plays the life of a cluster: time passes, jobs end early, are
// cancelled, come. At every moment the plan is valid and the timeline is its sum;
// nothing completes later than it was to; and after Improve, trying every job
// afresh in list order finds nothing better.
func TestLive(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		name := append(PaperStrategies(), "1.5X+c")[seed%7]
		p := Problem{Nodes: 50, Busy: []Busy{{0, 3000, 7}, {500, Forever, 3}}}
		draw := func(submit int64) Job {
			j := Job{Submit: submit}
			for range 1 + random.IntN(5) {
				j.Profile = append(j.Profile, Step{1 + random.Int64N(500), 1 + random.IntN(40)})
			}
			return j
		}
		for range 60 {
			p.Jobs = append(p.Jobs, draw(random.Int64N(200)))
		}
		strategy := mustStrategy(t, name).(list)
		live, err := NewLive(p, strategy)
		if err != nil {
			t.Fatal(err)
		}
		want, err := strategy.Plan(p)
		if err != nil || !cmp.Equal(live.Schedule(), want) {
			t.Fatalf("%s: not the strategy's plan", name)
		}
		now := int64(0)
		for range 150 {
			now += random.Int64N(60)
			live.Advance(now)
			ends := ends(live.Schedule())
			switch i := random.IntN(len(live.Schedule())); random.IntN(4) {
			case 0:
				if _, err := live.Append(draw(now)); err != nil {
					t.Fatal(err)
				}
			case 1:
				live.End(i, now+random.Int64N(100))
			case 2: // one that is running
				if i = slices.IndexFunc(live.Schedule(), func(p Placement) bool { return p.Start <= now && p.End() > now }); i >= 0 {
					live.End(i, now)
				}
			}
			before := slices.Clone(live.Schedule())
			moved := live.Improve()
			after := live.Schedule()
			for i, end := range ends {
				if after[i].End() > end {
					t.Fatalf("seed %d: job %d ends at %d instead of %d", seed, i, after[i].End(), end)
				}
				if cmp.Equal(before[i], after[i]) == slices.Contains(moved, i) {
					t.Fatalf("seed %d: moved %v, job %d from %v to %v", seed, moved, i, before[i], after[i])
				}
			}
			checkLive(t, live, before, now)
		}
	}
}

// TestLiveReplan: after early ends and cancellations, planning the whole list anew
// gives what the strategy plans over what runs; and from some point of the list on,
// the jobs before it stay.
func TestLiveReplan(t *testing.T) {
	var strategies []list
	for _, name := range append(PaperStrategies(), "1.5X+c", "2X+m") {
		strategies = append(strategies, mustStrategy(t, name).(list))
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t, 12)
		strategy := rapid.SampledFrom(strategies).Draw(t, "strategy")
		live, err := NewLive(p, strategy)
		if err != nil {
			return // nodes that are busy for ever
		}
		now := rapid.Int64Range(0, 30).Draw(t, "now")
		live.Advance(now)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, max(len(p.Jobs)-1, 0)), 0, min(len(p.Jobs), 4)).Draw(t, "end") {
			live.End(i, now)
		}
		before := slices.Clone(live.Schedule())
		first := rapid.IntRange(0, len(p.Jobs)).Draw(t, "first")
		live.Replan(first)
		left := Problem{Nodes: p.Nodes, Busy: slices.Clone(p.Busy)}
		var waiting []int
		for i, placed := range before {
			job := live.problem.Jobs[i]
			if i >= first && !live.ended[i] && placed.Start > now {
				job.Submit = max(job.Submit, now)
				left.Jobs = append(left.Jobs, job)
				waiting = append(waiting, i)
				continue
			}
			if !cmp.Equal(live.plan[i], placed) {
				t.Fatalf("job %d moved from %v to %v", i, placed, live.plan[i])
			}
			at := placed.Start
			for _, s := range placed.Steps {
				left.Busy = append(left.Busy, Busy{at, s.Duration, s.Nodes})
				at += s.Duration
			}
		}
		if len(waiting) == 0 {
			return
		}
		want, err := strategy.Plan(left)
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range waiting {
			if !cmp.Equal(live.plan[i], want[k]) {
				t.Fatalf("job %d is at %v, planned anew it is at %v", i, live.plan[i], want[k])
			}
		}
	})
}

func ends(s Schedule) []int64 {
	var ends []int64
	for _, p := range s {
		ends = append(ends, p.End())
	}
	return ends
}

// checkLive compares Improve with the plain way: take every job out in list order
// and fit it anew.
func checkLive(t *testing.T, live *Live, before Schedule, now int64) {
	t.Helper()
	res := live.problem.Timeline()
	for _, p := range before {
		res.AddPlacement(p)
	}
	for i, placed := range before {
		if placed.Start > now && !live.ended[i] {
			res.RemovePlacement(placed)
			o := live.list.options(live.problem.Jobs[i])
			o.NotBefore = max(o.NotBefore, now)
			if got, ok := Fit(res, live.problem.Nodes, live.problem.Jobs[i].Profile, o); ok && got.End() < placed.End() {
				placed = got
			}
			res.AddPlacement(placed)
		}
		if !cmp.Equal(placed, live.plan[i]) {
			t.Fatalf("job %d is at %v, trying afresh gives %v", i, live.plan[i], placed)
		}
	}
	res.DropBefore(now)
	if !slices.Equal(res.Steps(), live.res.Steps()) {
		t.Fatal("the timeline is not the sum of the plan")
	}
	for _, s := range live.res.Steps() {
		if s.Nodes > live.problem.Nodes {
			t.Fatalf("C2: %d nodes in use at %d", s.Nodes, s.Start)
		}
	}
}

func TestLiveErrors(t *testing.T) {
	live, err := NewLive(Problem{Nodes: 5, Busy: []Busy{{0, Forever, 1}}}, mustStrategy(t, "noX"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Profile{nil, {{1, 6}}, {{1, 5}}, {{0, 1}}} {
		if _, err := live.Append(Job{Profile: p}); err == nil {
			t.Errorf("%v is placed", p)
		}
	}
	if len(live.Schedule()) != 0 {
		t.Errorf("a refused job is in the plan: %v", live.Schedule())
	}
	if _, err := NewLive(Problem{}, mustStrategy(t, "noX")); err == nil {
		t.Error("no nodes")
	}
	if _, err := NewLive(Problem{Nodes: 1}, badStrategy{Strategy: mustStrategy(t, "noX")}); err == nil {
		t.Error("no strategy")
	}
}
