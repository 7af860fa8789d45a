package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// naiveTimeline is the resource EP second by second, over [0, len).
type naiveTimeline []int

func (t naiveTimeline) add(start, end int64, nodes int) {
	for s := max(start, 0); s < min(end, int64(len(t))); s++ {
		t[s] += nodes
	}
}

func (t naiveTimeline) at(s int64) int {
	if s < 0 || s >= int64(len(t)) {
		return 0
	}
	return t[s]
}

func (t naiveTimeline) free(start, end int64, nodes, capacity int) bool {
	for s := start; s < end; s++ {
		if t.at(s)+nodes > capacity {
			return false
		}
	}
	return true
}

// naiveFits lists, by exhaustive search, the start times of all steps of every
// valid placement that completes by deadline, in lexical order.
func naiveFits(res naiveTimeline, capacity int, p Profile, o FitOptions, deadline int64) [][]int64 {
	var all [][]int64
	starts := make([]int64, len(p))
	var place func(i int, earliest int64)
	place = func(i int, earliest int64) {
		for s := earliest; s+p[i:].Duration() <= deadline; s++ {
			if i == 0 && o.Fixed && s != o.NotBefore {
				return
			}
			if i > 0 {
				if s-starts[i-1] > naiveLongest(p, o, i-1) || !res.free(starts[i-1], s, p[i-1].Nodes, capacity) {
					return
				}
			}
			if !res.free(s, s+p[i].Duration, p[i].Nodes, capacity) {
				continue
			}
			starts[i] = s
			if i+1 == len(p) {
				all = append(all, append([]int64(nil), starts...))
				return // later ends of the same prefix are not earlier
			}
			place(i+1, s+p[i].Duration)
		}
	}
	place(0, o.NotBefore)
	return all
}

func naiveLongest(p Profile, o FitOptions, i int) int64 {
	if i < len(o.MaxDuration) && o.MaxDuration[i] > 0 {
		return max(o.MaxDuration[i], p[i].Duration)
	}
	if o.Limit == Infinite {
		return math.MaxInt64
	}
	return int64(math.Floor(float64(max(o.Limit, 1))*float64(p[i].Duration) + 1e-9))
}

func naiveWaste(p Profile, starts []int64) int64 {
	waste := int64(0)
	for i := range len(p) - 1 {
		waste += (starts[i+1] - starts[i] - p[i].Duration) * int64(p[i].Nodes)
	}
	return waste
}

// drawBusy draws intervals in [0, horizon) that never exceed capacity.
func drawBusy(t *rapid.T, capacity int, horizon int64) []Busy {
	used := make(naiveTimeline, horizon)
	var busy []Busy
	for range rapid.IntRange(0, 6).Draw(t, "busy") {
		start := rapid.Int64Range(0, horizon-1).Draw(t, "busy start")
		duration := rapid.Int64Range(1, horizon-start).Draw(t, "busy duration")
		nodes := rapid.IntRange(1, capacity).Draw(t, "busy nodes")
		if used.free(start, start+duration, nodes, capacity) {
			used.add(start, start+duration, nodes)
			busy = append(busy, Busy{start, duration, nodes})
		}
	}
	return busy
}

func drawProfile(t *rapid.T, steps int, duration int64, nodes int) Profile {
	p := make(Profile, rapid.IntRange(1, steps).Draw(t, "steps"))
	for i := range p {
		p[i] = Step{
			Duration: rapid.Int64Range(1, duration).Draw(t, "duration"),
			Nodes:    rapid.IntRange(1, nodes).Draw(t, "nodes"),
		}
	}
	return p
}

func drawLimit(t *rapid.T) ExpandLimit {
	return rapid.SampledFrom([]ExpandLimit{1, 1.5, 2, 3, Infinite}).Draw(t, "limit")
}

func drawProblem(t *rapid.T, jobs int) Problem {
	p := Problem{Nodes: rapid.IntRange(1, 12).Draw(t, "nodes")}
	p.Busy = drawBusy(t, p.Nodes, 20)
	for range rapid.IntRange(0, jobs).Draw(t, "jobs") {
		j := Job{
			ID:      "job",
			Submit:  rapid.Int64Range(0, 20).Draw(t, "submit"),
			Profile: drawProfile(t, 5, 6, p.Nodes),
		}
		if rapid.Bool().Draw(t, "own limit") {
			j.ExpandLimit = drawLimit(t)
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

func mustStrategy(t testing.TB, name string) Strategy {
	t.Helper()
	s, err := StrategyByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
