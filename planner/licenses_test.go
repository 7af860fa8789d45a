package planner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLicenses plans jobs that need licences: there are 2 of licence 0, and 1 of licence 1. A fifth node that others have reserved changes nothing.
func TestLicenses(t *testing.T) {
	job := func(duration int64, nodes int, needs ...LicenseNeed) PoolJob {
		return PoolJob{Job: Job{Profile: Profile{{Duration: duration, Nodes: nodes}}}, Driver: -1, Licenses: needs}
	}
	limited := func(j PoolJob, limit int64) PoolJob {
		j.Limits = []int64{limit}
		return j
	}
	for _, c := range []struct {
		name string
		busy []NodeBusy
		used [2][]LicenseUse
		jobs []PoolJob
		want []int64 // starts; -1: no plan
	}{
		{"free", nil, [2][]LicenseUse{}, []PoolJob{job(10, 1, LicenseNeed{0, 2})}, []int64{0}},
		{"in use for some time", nil, [2][]LicenseUse{{{0, 50, 1}}}, []PoolJob{job(10, 1, LicenseNeed{0, 2})}, []int64{50}},
		{"one is left", nil, [2][]LicenseUse{{{0, 50, 1}}}, []PoolJob{job(10, 1, LicenseNeed{0, 1})}, []int64{0}},
		{"two jobs in turn", nil, [2][]LicenseUse{}, []PoolJob{job(10, 1, LicenseNeed{0, 2}), job(10, 1, LicenseNeed{0, 1})}, []int64{0, 10}},
		{"a job without licences does not wait", nil, [2][]LicenseUse{{{0, 50, 2}}}, []PoolJob{job(10, 1, LicenseNeed{0, 1}), job(60, 3)}, []int64{50, 0}},
		{"both licences", nil, [2][]LicenseUse{{{0, 50, 1}}, {{55, 60, 1}}}, []PoolJob{job(10, 1, LicenseNeed{0, 2}, LicenseNeed{1, 1})}, []int64{60}},
		{"a use that begins before its time limit", nil, [2][]LicenseUse{{{15, 60, 1}}}, []PoolJob{limited(job(10, 1, LicenseNeed{0, 2}), 20), limited(job(10, 1, LicenseNeed{0, 2}), 15)}, []int64{60, 0}},
		{"while an earlier job waits for nodes", busyFor(30, 0, 1), [2][]LicenseUse{}, []PoolJob{job(10, 4, LicenseNeed{0, 2}), job(30, 1, LicenseNeed{0, 1}), job(31, 1, LicenseNeed{0, 1})}, []int64{30, 0, 40}},
		{"never", nil, [2][]LicenseUse{{{0, Forever, 1}}}, []PoolJob{job(10, 1, LicenseNeed{0, 2}), job(10, 1, LicenseNeed{0, 1})}, []int64{-1, 0}},
		{"more than there are", nil, [2][]LicenseUse{}, []PoolJob{job(10, 1, LicenseNeed{1, 2})}, []int64{-1}},
	} {
		for i, strategy := range []Strategy{mustStrategy(t, "noX"), mustStrategy(t, "2X+c"), &oncePerPool{Strategy: mustStrategy(t, "noX")}, mustStrategy(t, "noX")} {
			t.Run(c.name, func(t *testing.T) {
				p := Pool{Nodes: 4, Busy: c.busy, Jobs: c.jobs, Licenses: []License{{2, c.used[0]}, {1, c.used[1]}}}
				if i == 3 {
					p.Nodes, p.Reserved = 5, reservedOn(0, Forever, 4)
				}
				for j := range p.Jobs {
					p.Jobs[j].ID = fmt.Sprint(j)
				}
				got, last, err := p.PlanAgain(strategy, 1000, nil)
				if err != nil {
					t.Fatal(err)
				}
				again, _, err := p.PlanAgain(strategy, 1000, last)
				if err != nil {
					t.Fatal(err)
				}
				if starts := startsOf(got); !slices.Equal(starts, c.want) || !slices.Equal(startsOf(again), c.want) {
					t.Errorf("they start at %v, and planned again at %v, want %v", starts, startsOf(again), c.want)
				}
				if once, ok := strategy.(*oncePerPool); ok && once.calls > 2 { // two plans
					t.Errorf("%d calls of a strategy that must be called once", once.calls)
				}
			})
		}
	}
	if _, err := (Pool{Nodes: 1, Jobs: []PoolJob{job(1, 1, LicenseNeed{0, 1})}}).Plan(mustStrategy(t, "noX")); err == nil {
		t.Error("a licence that the pool does not have was taken")
	}
}

func startsOf(all []Planned) (starts []int64) {
	for _, p := range all {
		if p.Unfit != "" {
			p.Start = -1
		}
		starts = append(starts, p.Start)
	}
	return starts
}

// TestLicensesRespected plans random pools: no licence is used more often than there are.
func TestLicensesRespected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := licensedPool(t)
		strategy, err := StrategyByName(rapid.SampledFrom([]string{"noX", "2X", "infX+c", "rigid"}).Draw(t, "strategy"))
		if err != nil {
			t.Fatal(err)
		}
		planned, err := p.Plan(strategy)
		if err != nil {
			t.Fatal(err)
		}
		checkLicensed(t, p, planned)
	})
}

// licensedPool draws a pool of jobs that need licences.
func licensedPool(t *rapid.T) Pool {
	p := Pool{Nodes: rapid.IntRange(1, 6).Draw(t, "nodes")}
	for range rapid.IntRange(1, 3).Draw(t, "licences") {
		l := License{Total: rapid.IntRange(1, 5).Draw(t, "total")}
		for range rapid.IntRange(0, 2).Draw(t, "uses") {
			start := rapid.Int64Range(0, 50).Draw(t, "use start")
			l.Used = append(l.Used, LicenseUse{start, start + rapid.Int64Range(1, 50).Draw(t, "use"), rapid.IntRange(1, l.Total).Draw(t, "used")})
		}
		p.Licenses = append(p.Licenses, l)
	}
	for j := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		one := PoolJob{Job: Job{ID: fmt.Sprint(j), Submit: rapid.Int64Range(0, 20).Draw(t, "submit")}, Driver: -1}
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			one.Profile = append(one.Profile, Step{rapid.Int64Range(1, 30).Draw(t, "duration"), rapid.IntRange(1, p.Nodes).Draw(t, "step")})
		}
		if rapid.Bool().Draw(t, "limited") {
			one.Limits = []int64{one.Profile.Duration() + rapid.Int64Range(0, 20).Draw(t, "beyond")}
		}
		for l := range p.Licenses {
			if rapid.Bool().Draw(t, "needs") {
				one.Licenses = append(one.Licenses, LicenseNeed{l, rapid.IntRange(1, p.Licenses[l].Total).Draw(t, "count")})
			}
		}
		p.Jobs = append(p.Jobs, one)
	}
	return p
}

// checkLicensed checks that no job starts too early or without its licences.
func checkLicensed(t *rapid.T, p Pool, planned []Planned) {
	used := p.licenseTimes()
	before := p.licenseTimes()
	for j, one := range planned {
		if one.Unfit != "" {
			continue
		}
		if one.Start < p.Jobs[j].Submit {
			t.Fatalf("job %d starts at %d, before it may", j, one.Start)
		}
		for _, need := range p.Jobs[j].Licenses {
			used[need.License].Add(one.Start, one.End(), need.Count)
		}
	}
	for l, of := range p.Licenses {
		for _, step := range used[l].Steps() {
			if step.Nodes > max(of.Total, before[l].Max(step.Start, step.End)) {
				t.Fatalf("%d of %d licences %d in use from %d on", step.Nodes, of.Total, l, step.Start)
			}
		}
	}
}
