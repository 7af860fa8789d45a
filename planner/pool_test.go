package planner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
)

func TestPoolPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		pool Pool
		want []Planned
	}{
		{"running job grows where the waiting one may not start", Pool{Nodes: 4, Jobs: []PoolJob{
			{Job: Job{ID: "waits", Submit: 100, Profile: Profile{{50, 3}}}, Driver: -1},
			{Job: Job{ID: "runs", Submit: 100, Profile: Profile{{10, 2}, {10, 3}}}, Held: []int{1, 3}, Driver: 3, Fixed: true},
		}}, []Planned{
			{Placement: placed(120, Step{50, 3}), Nodes: [][]int{{0, 1, 2}}},
			{Placement: placed(100, Step{10, 2}, Step{10, 3}), Nodes: [][]int{{1, 3}, {0, 1, 3}}},
		}},
		{"running job waits for its growth", Pool{Nodes: 4, Busy: []NodeBusy{{0, 0, 130}, {2, 0, 115}}, Jobs: []PoolJob{
			{Job: Job{ID: "runs", Submit: 100, Profile: Profile{{10, 2}, {10, 3}}}, Held: []int{1, 3}, Driver: 1, Fixed: true, MaxDuration: []int64{15}},
		}}, []Planned{
			{Placement: placed(100, Step{15, 2}, Step{10, 3}), Nodes: [][]int{{1, 3}, {1, 2, 3}}},
		}},
		{"second running job must go first", Pool{Nodes: 10, Jobs: []PoolJob{
			{Job: Job{ID: "a", Profile: Profile{{10, 4}, {50, 7}}, ExpandLimit: Infinite}, Held: []int{0, 1, 2, 3}, Driver: -1, Fixed: true},
			{Job: Job{ID: "b", Profile: Profile{{10, 4}, {20, 6}}}, Held: []int{4, 5, 6, 7}, Driver: -1, Fixed: true},
		}}, []Planned{
			{Placement: placed(0, Step{30, 4}, Step{50, 7}), Nodes: [][]int{{0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6}}},
			{Placement: placed(0, Step{10, 4}, Step{20, 6}), Nodes: [][]int{{4, 5, 6, 7}, {4, 5, 6, 7, 8, 9}}},
		}},
		{"unfit jobs leave the others alone", Pool{Nodes: 4, Busy: []NodeBusy{{0, 0, Forever}}, Jobs: []PoolJob{
			{Job: Job{ID: "too large", Profile: Profile{{10, 5}}}, Driver: -1},
			{Job: Job{ID: "no node for it", Profile: Profile{{10, 4}}}, Driver: -1},
			{Job: Job{ID: "malformed", Profile: Profile{{0, 4}}}, Driver: -1},
			{Job: Job{ID: "fits", Profile: Profile{{10, 3}}}, Driver: -1},
		}}, []Planned{
			{Unfit: "it needs 5 nodes, the pool has 4"},
			{Unfit: "there is no time at which its nodes are free for long enough"},
			{Unfit: "step 1: duration is 0, must be at least 1 second"},
			{Placement: placed(0, Step{10, 3}), Nodes: [][]int{{1, 2, 3}}},
		}},
		{"running job that cannot go on keeps its nodes", Pool{Nodes: 3, Busy: []NodeBusy{{0, 0, Forever}}, Jobs: []PoolJob{
			{Job: Job{ID: "runs", Profile: Profile{{10, 1}, {10, 3}}}, Held: []int{1}, Driver: 1, Fixed: true},
			{Job: Job{ID: "waits", Profile: Profile{{5, 2}}}, Driver: -1},
		}}, []Planned{
			{Unfit: "the nodes of a coming step are not free in time, and its expand limit does not let it wait"},
			{Placement: placed(20, Step{5, 2}), Nodes: [][]int{{1, 2}}},
		}},
		{"the batch script's node stays to the end", Pool{Nodes: 4, Busy: []NodeBusy{{0, 40, 100}}, Jobs: []PoolJob{
			{Job: Job{ID: "shrinks", Profile: Profile{{30, 3}, {30, 2}}}, Driver: Lowest},
			{Job: Job{ID: "whatever", Submit: 40, Profile: Profile{{5, 1}}}, Driver: -1},
		}}, []Planned{
			{Placement: placed(0, Step{30, 3}, Step{30, 2}), Nodes: [][]int{{1, 2, 3}, {1, 2}}},
			{Placement: placed(40, Step{5, 1}), Nodes: [][]int{{3}}},
		}},
		{"two gaps are no window", Pool{Nodes: 2, Busy: []NodeBusy{{0, 0, 10}, {1, 10, 20}}, Jobs: []PoolJob{
			{Job: Job{ID: "a", Profile: Profile{{20, 1}}}, Driver: -1},
		}}, []Planned{
			{Placement: placed(10, Step{20, 1}), Nodes: [][]int{{0}}},
		}},
		{"held node that is promised to others", Pool{Nodes: 2, Busy: []NodeBusy{{0, 5, 30}, {0, -5, 3}}, Jobs: []PoolJob{
			{Job: Job{ID: "runs", Profile: Profile{{10, 1}}}, Held: []int{0}, Driver: 0, Fixed: true},
			{Job: Job{ID: "waits", Profile: Profile{{10, 2}}}, Driver: -1},
		}}, []Planned{
			{Placement: placed(0, Step{10, 1}), Nodes: [][]int{{0}}},
			{Placement: placed(30, Step{10, 2}), Nodes: [][]int{{0, 1}}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.pool.Plan(mustStrategy(t, "noX"))
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPoolRigid checks that a plan without evolution still has the job's steps, all at the peak.
func TestPoolRigid(t *testing.T) {
	got, err := Pool{Nodes: 3, Jobs: []PoolJob{{Job: Job{Profile: Profile{{5, 1}, {5, 2}}}, Driver: -1}}}.Plan(mustStrategy(t, "rigid"))
	want := []Planned{{Placement: placed(0, Step{5, 2}, Step{5, 2}), Nodes: [][]int{{0, 1}, {0, 1}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

type badStrategy struct {
	Strategy
	schedule Schedule
	err      error
}

func (b badStrategy) Plan(Problem) (Schedule, error) { return b.schedule, b.err }

func TestPoolErrors(t *testing.T) {
	noX := mustStrategy(t, "noX")
	job := PoolJob{Job: Job{ID: "a", Profile: Profile{{5, 1}}}, Driver: -1}
	held := func(nodes ...int) PoolJob { j := job; j.Held, j.Fixed = nodes, true; return j }
	idle := held(0)
	idle.Fixed = false
	for want, c := range map[string]struct {
		pool     Pool
		strategy Strategy
	}{
		"pool of 0 nodes":                         {Pool{}, noX},
		"busy node 2 is not within":               {Pool{Nodes: 2, Busy: []NodeBusy{{2, 0, 1}}}, noX},
		`job "a" holds node 2, which`:             {Pool{Nodes: 2, Jobs: []PoolJob{held(2)}}, noX},
		`jobs "a" and "a" both hold node 1`:       {Pool{Nodes: 2, Jobs: []PoolJob{held(1), held(1)}}, noX},
		`job "a" holds nodes but does not run`:    {Pool{Nodes: 2, Jobs: []PoolJob{idle}}, noX},
		"strategy noX: out of order":              {Pool{Nodes: 2, Jobs: []PoolJob{job}}, badStrategy{noX, nil, errors.New("out of order")}},
		"strategy noX gave an invalid plan: C1 b": {Pool{Nodes: 2, Jobs: []PoolJob{job}}, badStrategy{noX, Schedule{placed(0, Step{6, 1})}, nil}},
	} {
		if _, err := c.pool.Plan(c.strategy); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// drawPool draws a pool in mid-life: running jobs in any state, nodes with outages and
// reservations, and waiting jobs.
func drawPool(t *rapid.T) Pool {
	p := Pool{Nodes: rapid.IntRange(2, 10).Draw(t, "nodes")}
	for range rapid.IntRange(0, 10).Draw(t, "busy") {
		start := rapid.Int64Range(-10, 40).Draw(t, "start")
		end := start + rapid.Int64Range(1, 30).Draw(t, "length")
		if rapid.IntRange(0, 9).Draw(t, "down") == 0 {
			end = Forever
		}
		p.Busy = append(p.Busy, NodeBusy{rapid.IntRange(0, p.Nodes-1).Draw(t, "node"), start, end})
	}
	unheld := rapid.Permutation(seq(p.Nodes)).Draw(t, "unheld")
	for range rapid.IntRange(0, 7).Draw(t, "jobs") {
		j := PoolJob{Job: Job{ID: "job", Profile: plannertest.DrawProfile(t, 4, 12, p.Nodes)}, Driver: -1}
		if rapid.Bool().Draw(t, "own limit") {
			j.ExpandLimit = plannertest.DrawLimit(t)
		}
		if n := j.Profile[0].Nodes; n <= len(unheld) && rapid.Bool().Draw(t, "runs") {
			j.Fixed, j.Held, unheld = true, unheld[:n:n], unheld[n:]
			j.Driver = j.Held[rapid.IntRange(0, n-1).Draw(t, "driver")]
			j.Release = j.Held[:rapid.IntRange(0, n).Draw(t, "release")]
			j.MaxDuration = []int64{rapid.Int64Range(0, 30).Draw(t, "allowance")}
		} else {
			j.Submit = rapid.Int64Range(0, 20).Draw(t, "submit")
			j.Driver = rapid.SampledFrom([]int{-1, Lowest}).Draw(t, "driver")
			j.Prefer = unheld[:rapid.IntRange(0, len(unheld)).Draw(t, "prefer")]
		}
		p.Jobs = append(p.Jobs, j)
	}
	if rapid.Bool().Draw(t, "switches") {
		p.Switches = drawSwitches(t, p.Nodes)
	}
	return p
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// TestPoolConditions checks that every plan of a pool keeps C1 to C4, running jobs continue where
// they are, and a job without a plan says why.
func TestPoolConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		s, _ := StrategyByName(rapid.SampledFrom([]string{"noX", "2X", "2X+c", "infX+c"}).Draw(t, "strategy"))
		if calls := 0; rapid.Bool().Draw(t, "once") {
			s = partial{once{s, &calls}}
			defer func() {
				if calls > 2 { // it plans the pool twice
					t.Fatalf("%d calls of the strategy, at most 1 for a pool are allowed", calls)
				}
			}()
		}
		got, err := p.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Plan(s)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("not deterministic:\n%v\n%v", got, again)
		}
		var mapped []MappedJob
		var nodes [][][]int
		var busy []NodeBusy
		for i, job := range p.Jobs {
			plan := got[i]
			if plan.Unfit != "" {
				if job.Fixed {
					for _, n := range job.Held {
						busy = append(busy, NodeBusy{n, 0, job.Profile.Duration()})
					}
				}
				continue
			}
			limit := ExpandLimitOf(s)
			if job.Fixed {
				if plan.Start != job.Submit || !slices.Equal(plan.Nodes[0], slices.Sorted(slices.Values(job.Held))) {
					t.Fatalf("running job %d goes on as %v", i, plan)
				}
				limit = Infinite // MaxDuration bounds the first step
				job.ExpandLimit = 0
			}
			if err := checkPlacement(job.Job, plan.Placement, limit); err != nil {
				t.Fatalf("C1: job %d: %v", i, err)
			}
			if job.Driver == Lowest {
				job.Driver = slices.Min(plan.Nodes[0])
			}
			mapped = append(mapped, MappedJob{Placement: plan.Placement, Held: job.Held, Driver: job.Driver})
			nodes = append(nodes, plan.Nodes)
		}
		for _, b := range p.Busy {
			// If others want a node that a running job holds, the job keeps it.
			if !slices.ContainsFunc(p.Jobs, func(j PoolJob) bool { return slices.Contains(j.Held, b.Node) }) {
				busy = append(busy, b)
			}
		}
		checkMapping(t, p.Nodes, busy, mapped, nodes)
	})
}
