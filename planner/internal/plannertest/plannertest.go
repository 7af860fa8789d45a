// Package plannertest draws problems for tests.
package plannertest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// DrawBusy draws intervals in [0, horizon) that never exceed capacity.
func DrawBusy(t *rapid.T, capacity int, horizon int64) []paper.Busy {
	used := make(naive.Timeline, horizon)
	var busy []paper.Busy
	for range rapid.IntRange(0, 6).Draw(t, "busy") {
		start := rapid.Int64Range(0, horizon-1).Draw(t, "busy start")
		duration := rapid.Int64Range(1, horizon-start).Draw(t, "busy duration")
		nodes := rapid.IntRange(1, capacity).Draw(t, "busy nodes")
		if used.Free(start, start+duration, nodes, capacity) {
			used.Add(start, start+duration, nodes)
			busy = append(busy, paper.Busy{Start: start, Duration: duration, Nodes: nodes})
		}
	}
	return busy
}

func DrawProfile(t *rapid.T, steps int, duration int64, nodes int) profile.Profile {
	p := make(profile.Profile, rapid.IntRange(1, steps).Draw(t, "steps"))
	for i := range p {
		p[i] = profile.Step{
			Duration: rapid.Int64Range(1, duration).Draw(t, "duration"),
			Nodes:    rapid.IntRange(1, nodes).Draw(t, "nodes"),
		}
	}
	return p
}

func DrawLimit(t *rapid.T) profile.ExpandLimit {
	return rapid.SampledFrom([]profile.ExpandLimit{1, 1.5, 2, 3, profile.Infinite}).Draw(t, "limit")
}

func DrawProblem(t *rapid.T, jobs int) paper.Problem {
	p := paper.Problem{Nodes: rapid.IntRange(1, 12).Draw(t, "nodes")}
	p.Busy = DrawBusy(t, p.Nodes, 20)
	for range rapid.IntRange(0, jobs).Draw(t, "jobs") {
		j := paper.Job{
			ID:      "job",
			Submit:  rapid.Int64Range(0, 20).Draw(t, "submit"),
			Profile: DrawProfile(t, 5, 6, p.Nodes),
		}
		if rapid.Bool().Draw(t, "own limit") {
			j.ExpandLimit = DrawLimit(t)
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

func NaiveLongest(p profile.Profile, o paper.FitOptions, i int) int64 {
	if i < len(o.MaxDuration) && o.MaxDuration[i] > 0 {
		return max(o.MaxDuration[i], p[i].Duration)
	}
	if o.Limit == profile.Infinite {
		return math.MaxInt64
	}
	return int64(math.Floor(float64(max(o.Limit, 1))*float64(p[i].Duration) + 1e-9))
}

// DrawMoldable is DrawProblem with some moldable jobs.
func DrawMoldable(t *rapid.T, jobs int) paper.Problem {
	p := DrawProblem(t, jobs)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		for range rapid.IntRange(0, 3).Draw(t, "alternatives") {
			j.Alternatives = append(j.Alternatives, DrawProfile(t, 4, 12, p.Nodes+1))
		}
		if j.IsMoldable() {
			j.By = paper.Preference(rapid.IntRange(0, 2).Draw(t, "prefers"))
		}
	}
	return p
}
