package planner

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// once is a strategy that counts its calls and should be called once per pool.
type once struct {
	Strategy
	calls *int
}

func (once) AsksOnce() bool             { return true }
func (o once) ExpandLimit() ExpandLimit { return ExpandLimitOf(o.Strategy) }
func (o once) Rigid() bool              { return IsRigid(o.Strategy) }

func (o once) Plan(p Problem) (Schedule, error) {
	*o.calls++
	return o.Strategy.Plan(p)
}

// partial also reports all unfit jobs at once.
type partial struct{ once }

func (p partial) PlanPartly(problem Problem) (Schedule, map[int]string, error) {
	*p.calls++
	return planPartly(p.Strategy, problem)
}

// TestAskedOnce checks that node windows cost no further call, however many are in the way.
func TestAskedOnce(t *testing.T) {
	pool := Pool{Nodes: 8}
	for n := range 8 { // eight gaps, all of them temporary
		for k := range int64(20) {
			pool.Busy = append(pool.Busy, NodeBusy{n, 100*k + 10*int64(n), 100*k + 10*int64(n) + 20})
		}
	}
	for range 6 {
		pool.Jobs = append(pool.Jobs, PoolJob{Driver: -1, Job: Job{Profile: Profile{{90, 2}, {70, 3}}}})
	}
	pool.Jobs = append(pool.Jobs, PoolJob{Driver: -1, Job: Job{Profile: Profile{{10, 9}}}}, PoolJob{Driver: -1, Job: Job{Profile: Profile{{10, 8}}}})
	for _, name := range []string{"noX", "2X+c", "rigid"} {
		s, err := StrategyByName(name)
		must.OK(t, err)
		calls := 0
		want, err := pool.Plan(once{s, &calls})
		must.OK(t, err)
		if calls != 1 {
			t.Errorf("%s: %d calls, want 1", name, calls)
		}
		for i, p := range want[:6] {
			if p.Unfit != "" {
				t.Errorf("%s: job %d has no plan: %s", name, i, p.Unfit)
			}
		}
		calls = 0
		got, err := pool.Plan(partial{once{s, &calls}})
		if err != nil || calls != 1 || !cmp.Equal(got, want) {
			t.Errorf("%s: told of unfit jobs at once: %d calls, %v: %s", name, calls, err, cmp.Diff(want, got))
		}
	}
}

func TestKeep(t *testing.T) {
	whole := Profile{{10, 4}}
	for _, c := range []struct {
		name string
		busy []Busy
		jobs []Job
		plan Schedule
		want Schedule
	}{
		{"an order that is not the list's stays", nil, []Job{{Profile: whole}, {Profile: whole}},
			Schedule{placed(10, Step{10, 4}), placed(0, Step{10, 4})},
			Schedule{placed(10, Step{10, 4}), placed(0, Step{10, 4})}},
		{"who has no room any more goes before those behind", []Busy{{0, 10, 1}}, []Job{{Profile: whole}, {Profile: Profile{{10, 3}}}, {Profile: whole}},
			Schedule{placed(0, Step{10, 4}), placed(10, Step{10, 3}), placed(20, Step{10, 4})},
			Schedule{placed(10, Step{10, 4}), placed(0, Step{10, 3}), placed(20, Step{10, 4})}},
		{"expanded", []Busy{{5, 15, 3}}, []Job{{Profile: Profile{{5, 4}, {10, 1}, {5, 4}}, ExpandLimit: 2}},
			Schedule{placed(0, Step{5, 4}, Step{10, 1}, Step{5, 4})},
			Schedule{placed(0, Step{5, 4}, Step{15, 1}, Step{5, 4})}},
	} {
		got, err := Keep(Problem{Nodes: 4, Busy: c.busy, Jobs: c.jobs}, c.plan, 1)
		if err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, cmp.Diff(c.want, got))
		}
	}
	_, err := Keep(Problem{Nodes: 4, Busy: []Busy{{0, Forever, 1}}, Jobs: []Job{{ID: "a", Profile: whole}}}, Schedule{placed(0, Step{10, 4})}, 1)
	var unfit *FitError
	if !errors.As(err, &unfit) || unfit.ID != "a" {
		t.Errorf("one that fits nowhere any more: %v", err)
	}
}

// TestKeepConditions checks that a kept plan is valid, unchanged where possible, and delays no job
// for a later one.
func TestKeepConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProblem(t, 8)
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "2X", "infX+c"}).Draw(t, "strategy"))
		limit := ExpandLimitOf(s)
		plan, err := s.Plan(p)
		if err != nil {
			return // a job fits nowhere
		}
		same, err := Keep(p, plan, limit)
		if err != nil || !cmp.Equal(same, plan) {
			t.Fatalf("with nothing in the way: %v\n%s", err, cmp.Diff(plan, same))
		}
		p.Busy = append(p.Busy, plannertest.DrawBusy(t, p.Nodes, 60)...)
		got, err := Keep(p, plan, limit)
		if err != nil {
			return
		}
		must.OK(t, Verify(p, got, limit))
		if want := naiveKeep(p, plan, limit); !cmp.Equal(got, want) {
			t.Fatalf("trying every job afresh (-want +got):\n%s", cmp.Diff(want, got))
		}
		res := p.Timeline()
		for i, j := range p.Jobs {
			if isFree(res, p.Nodes, plan[i]) {
				if got[i].End() > plan[i].End() {
					t.Fatalf("job %d is put off though there is room: %v, was %v", i, got[i], plan[i])
				}
				res.AddPlacement(plan[i])
				continue
			}
			best, ok := Fit(res, p.Nodes, j.Profile, FitOptions{NotBefore: j.Submit, Limit: limitOf(j, limit)})
			if !ok || got[i].End() > best.End() {
				t.Fatalf("job %d ends at second %d, over those before it it could at %d", i, got[i].End(), best.End())
			}
			break
		}
	})
}

// naiveKeep is Keep, but fits all jobs again in list order once a job has lost its placement.
func naiveKeep(p Problem, plan Schedule, limit ExpandLimit) Schedule {
	fit := func(res *Timeline, j Job) Placement {
		placed, _ := Fit(res, p.Nodes, j.Profile, FitOptions{NotBefore: j.Submit, Limit: limitOf(j, limit)})
		return placed
	}
	res, kept, lost := p.Timeline(), slices.Clone(plan), false
	for i, j := range p.Jobs {
		if !isFree(res, p.Nodes, kept[i]) {
			kept[i], lost = fit(res, j), true
		}
		res.AddPlacement(kept[i])
	}
	for i, j := range p.Jobs {
		res.RemovePlacement(kept[i])
		if better := fit(res, j); lost && better.End() < kept[i].End() {
			kept[i] = better
		}
		res.AddPlacement(kept[i])
	}
	return kept
}

// limitOf returns a job's own limit or, without one, limit.
func limitOf(j Job, limit ExpandLimit) ExpandLimit {
	if j.ExpandLimit != 0 {
		return j.ExpandLimit
	}
	return limit
}

// isFree reports whether a placement's nodes are free.
func isFree(res *Timeline, capacity int, placed Placement) bool {
	at := placed.Start
	for _, s := range placed.Steps {
		if res.Max(at, at+s.Duration)+s.Nodes > capacity {
			return false
		}
		at += s.Duration
	}
	return true
}
