package search

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// TestLowerBound covers bounds that rounding would make wrong or too small.
func TestLowerBound(t *testing.T) {
	const second = 1 << 50
	tests := []struct {
		name      string
		problem   paper.Problem
		objective Objective
		want      Bound
	}{
		{"a third and two thirds fill the rest", // 5/3 was below 5 − 10/3
			paper.Problem{Nodes: 5, Busy: []paper.Busy{{0, 1, 3}, {1, 1, 4}}, Jobs: []paper.Job{{Profile: profile.Profile{{1, 2}}}}},
			Makespan, Bound{1, "critical path"}},
		{"exactly full",
			paper.Problem{Nodes: 7, Jobs: []paper.Job{{Profile: profile.Profile{{3, 1}}}, {Profile: profile.Profile{{3, 2}}}, {Profile: profile.Profile{{3, 4}}}}},
			Makespan, Bound{3, "critical path"}},
		{"one node-second too many",
			paper.Problem{Nodes: 7, Jobs: []paper.Job{{Profile: profile.Profile{{2_000_000_000, 1}}}, {Profile: profile.Profile{{2_000_000_000, 6}}}, {Profile: profile.Profile{{1, 1}}}}},
			Makespan, Bound{2_000_000_001, "area"}},
		{"areas beyond 53 bits", // as floating point numbers the two jobs fill the time before second 2^31 + 1
			paper.Problem{Nodes: profile.MaxNodes, Jobs: []paper.Job{
				{Profile: profile.Profile{{profile.MaxDuration, profile.MaxNodes}}}, {Profile: profile.Profile{{1, profile.MaxNodes}, {1, 1}}}, {Profile: profile.Profile{{1, 1}}}}},
			Makespan, Bound{profile.MaxDuration + 2, "area"}},
		{"areas beyond 64 bits",
			paper.Problem{Nodes: profile.MaxNodes, Jobs: []paper.Job{
				{Profile: profile.Profile{{profile.MaxDuration, profile.MaxNodes}, {profile.MaxDuration, profile.MaxNodes}, {profile.MaxDuration, profile.MaxNodes}}},
				{Profile: profile.Profile{{profile.MaxDuration, profile.MaxNodes}, {profile.MaxDuration, profile.MaxNodes}, {profile.MaxDuration, profile.MaxNodes}}},
				{Profile: profile.Profile{{1, 1}}}}},
			Makespan, Bound{6*profile.MaxDuration + 1, "area"}},
		{"mean of three",
			paper.Problem{Nodes: 3, Jobs: []paper.Job{{Profile: profile.Profile{{1, 3}}}, {Profile: profile.Profile{{1, 2}}}, {Profile: profile.Profile{{1, 1}}}}},
			MeanCompletion, Bound{4. / 3, "completions one by one"}},
		{"mean of late ones",
			paper.Problem{Nodes: 3, Jobs: []paper.Job{{Submit: second, Profile: profile.Profile{{1, 3}}}, {Submit: -second, Profile: profile.Profile{{2, 2}}}}},
			MeanCompletion, Bound{1.5, "completions one by one"}},
		{"it fits at no time",
			paper.Problem{Nodes: 3, Busy: []paper.Busy{{0, exact.Forever, 2}}, Jobs: []paper.Job{{Profile: profile.Profile{{1, 2}}}}},
			Makespan, Bound{float64(never), "large steps"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := LowerBound(test.problem, test.objective, 1); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// bestPlan returns the objective of the best plan, found by trying every second for every step.
func bestPlan(p paper.Problem, o Objective, limit profile.ExpandLimit) float64 {
	plan, err := noX(p)
	if err != nil {
		return math.Inf(1)
	}
	search := Search{Objective: o}
	best := search.objective(p, plan)
	latest, total := completions(p, plan)
	// A better plan ends by then: each job takes at least its least time.
	deadline := latest
	if o == MeanCompletion {
		deadline = 0
		for _, j := range p.Jobs {
			total.Minus(exact.Wide{Lo: uint64(j.Profile.Duration())})
		}
		for _, j := range p.Jobs {
			deadline = max(deadline, j.Submit+j.Profile.Duration()+int64(total.Lo))
		}
	}
	used := make(naive.Timeline, deadline)
	for _, b := range p.Busy {
		used.Add(b.Start, b.Start+b.Duration, b.Nodes)
	}
	trial := make(paper.Schedule, len(p.Jobs))
	// job tries everything for job k; step tries everything for its step i, which starts at start.
	var job func(k int, sum int64)
	var step func(k, i int, start, sum int64)
	job = func(k int, sum int64) {
		if k == len(p.Jobs) {
			best = min(best, search.objective(p, trial))
			return
		}
		j := p.Jobs[k]
		for s := j.Submit; s+j.Profile.Duration() <= deadline; s++ {
			trial[k] = profile.Placement{Start: s, Steps: make(profile.Profile, len(j.Profile))}
			step(k, 0, s, sum)
		}
	}
	step = func(k, i int, start, sum int64) {
		j := p.Jobs[k]
		if i == len(j.Profile) {
			sum += start - j.Submit
			if o == Makespan && float64(start) < best || o == MeanCompletion && float64(sum)/float64(len(p.Jobs)) < best {
				job(k+1, sum)
			}
			return
		}
		request := j.Profile[i]
		longest := request.Duration
		if i+1 < len(j.Profile) {
			l := limit
			if j.ExpandLimit != 0 {
				l = j.ExpandLimit
			}
			longest = plannertest.NaiveLongest(j.Profile, paper.FitOptions{Limit: l}, i)
		}
		for d := request.Duration; d <= longest && start+d <= deadline && used.Free(start, start+d, request.Nodes, p.Nodes); d++ {
			trial[k].Steps[i] = profile.Step{d, request.Nodes}
			used.Add(start, start+d, request.Nodes)
			step(k, i+1, start+d, sum)
			used.Add(start, start+d, -request.Nodes)
		}
	}
	job(0, 0)
	return best
}

// TestLowerBoundIsNeverBeaten checks all possible plans, including expanded ones, without any
// margin.
func TestLowerBoundIsNeverBeaten(t *testing.T) {
	met := 0
	rapid.Check(t, func(t *rapid.T) {
		p := paper.Problem{Nodes: rapid.IntRange(1, 9).Draw(t, "nodes")}
		p.Busy = plannertest.DrawBusy(t, p.Nodes, 4)
		for range rapid.IntRange(1, 3).Draw(t, "jobs") {
			j := paper.Job{Submit: rapid.Int64Range(0, 3).Draw(t, "submit"), Profile: plannertest.DrawProfile(t, 2, 2, p.Nodes)}
			if rapid.Bool().Draw(t, "own limit") {
				j.ExpandLimit = plannertest.DrawLimit(t)
			}
			p.Jobs = append(p.Jobs, j)
		}
		limit := plannertest.DrawLimit(t)
		for _, o := range []Objective{Makespan, MeanCompletion} {
			bound, best := LowerBound(p, o, limit), bestPlan(p, o, limit)
			if bound.Value > best {
				t.Fatalf("%s of at least %v proven, but there is a plan with %v", o, bound, best)
			}
			if bound.Value == best {
				met++
			}
		}
	})
	if met < 50 {
		t.Errorf("the bound met the best plan %d times", met)
	}
}
