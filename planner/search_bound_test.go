package planner

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestLowerBound: bounds that rounding would have made wrong, or less than they can be.
func TestLowerBound(t *testing.T) {
	const second = 1 << 50
	tests := []struct {
		name      string
		problem   Problem
		objective Objective
		want      Bound
	}{
		{"a third and two thirds fill the rest", // 5/3 was below 5 − 10/3
			Problem{Nodes: 5, Busy: []Busy{{0, 1, 3}, {1, 1, 4}}, Jobs: []Job{{Profile: Profile{{1, 2}}}}},
			Makespan, Bound{1, "critical path"}},
		{"exactly full",
			Problem{Nodes: 7, Jobs: []Job{{Profile: Profile{{3, 1}}}, {Profile: Profile{{3, 2}}}, {Profile: Profile{{3, 4}}}}},
			Makespan, Bound{3, "critical path"}},
		{"one node-second too many",
			Problem{Nodes: 7, Jobs: []Job{{Profile: Profile{{2_000_000_000, 1}}}, {Profile: Profile{{2_000_000_000, 6}}}, {Profile: Profile{{1, 1}}}}},
			Makespan, Bound{2_000_000_001, "area"}},
		{"areas beyond 53 bits", // as floating point numbers the two jobs fill the time before second 2^31 + 1
			Problem{Nodes: MaxNodes, Jobs: []Job{
				{Profile: Profile{{MaxDuration, MaxNodes}}}, {Profile: Profile{{1, MaxNodes}, {1, 1}}}, {Profile: Profile{{1, 1}}}}},
			Makespan, Bound{MaxDuration + 2, "area"}},
		{"areas beyond 64 bits",
			Problem{Nodes: MaxNodes, Jobs: []Job{
				{Profile: Profile{{MaxDuration, MaxNodes}, {MaxDuration, MaxNodes}, {MaxDuration, MaxNodes}}},
				{Profile: Profile{{MaxDuration, MaxNodes}, {MaxDuration, MaxNodes}, {MaxDuration, MaxNodes}}},
				{Profile: Profile{{1, 1}}}}},
			Makespan, Bound{6*MaxDuration + 1, "area"}},
		{"mean of three",
			Problem{Nodes: 3, Jobs: []Job{{Profile: Profile{{1, 3}}}, {Profile: Profile{{1, 2}}}, {Profile: Profile{{1, 1}}}}},
			MeanCompletion, Bound{4. / 3, "completions one by one"}},
		{"mean of late ones",
			Problem{Nodes: 3, Jobs: []Job{{Submit: second, Profile: Profile{{1, 3}}}, {Submit: -second, Profile: Profile{{2, 2}}}}},
			MeanCompletion, Bound{1.5, "completions one by one"}},
		{"it fits at no time",
			Problem{Nodes: 3, Busy: []Busy{{0, Forever, 2}}, Jobs: []Job{{Profile: Profile{{1, 2}}}}},
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

// bestPlan is the objective of the best of all plans, found by trying every second
// for every step.
func bestPlan(p Problem, o Objective, limit ExpandLimit) float64 {
	plan, err := (list{name: "noX", limit: 1}).Plan(p)
	if err != nil {
		return math.Inf(1)
	}
	search := Search{Objective: o}
	best := search.objective(p, plan)
	latest, total := completions(p, plan)
	// A plan that is better ends by then: each job has its least time at least.
	deadline := latest
	if o == MeanCompletion {
		deadline = 0
		for _, j := range p.Jobs {
			total.minus(wide{lo: uint64(j.Profile.Duration())})
		}
		for _, j := range p.Jobs {
			deadline = max(deadline, j.Submit+j.Profile.Duration()+int64(total.lo))
		}
	}
	used := make(naiveTimeline, deadline)
	for _, b := range p.Busy {
		used.add(b.Start, b.Start+b.Duration, b.Nodes)
	}
	trial := make(Schedule, len(p.Jobs))
	// job tries all of job k, step all of its step i, which starts at start.
	var job func(k int, sum int64)
	var step func(k, i int, start, sum int64)
	job = func(k int, sum int64) {
		if k == len(p.Jobs) {
			best = min(best, search.objective(p, trial))
			return
		}
		j := p.Jobs[k]
		for s := j.Submit; s+j.Profile.Duration() <= deadline; s++ {
			trial[k] = Placement{Start: s, Steps: make(Profile, len(j.Profile))}
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
			longest = naiveLongest(j.Profile, FitOptions{Limit: l}, i)
		}
		for d := request.Duration; d <= longest && start+d <= deadline && used.free(start, start+d, request.Nodes, p.Nodes); d++ {
			trial[k].Steps[i] = Step{d, request.Nodes}
			used.add(start, start+d, request.Nodes)
			step(k, i+1, start+d, sum)
			used.add(start, start+d, -request.Nodes)
		}
	}
	job(0, 0)
	return best
}

// TestLowerBoundIsNeverBeaten: by no plan of all that there are, expanded ones among
// them. That is compared without any margin.
func TestLowerBoundIsNeverBeaten(t *testing.T) {
	met := 0
	rapid.Check(t, func(t *rapid.T) {
		p := Problem{Nodes: rapid.IntRange(1, 9).Draw(t, "nodes")}
		p.Busy = drawBusy(t, p.Nodes, 4)
		for range rapid.IntRange(1, 3).Draw(t, "jobs") {
			j := Job{Submit: rapid.Int64Range(0, 3).Draw(t, "submit"), Profile: drawProfile(t, 2, 2, p.Nodes)}
			if rapid.Bool().Draw(t, "own limit") {
				j.ExpandLimit = drawLimit(t)
			}
			p.Jobs = append(p.Jobs, j)
		}
		limit := drawLimit(t)
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
