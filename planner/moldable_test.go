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

// moldable returns a job with these profiles.
func moldable(by Preference, profiles ...Profile) Job {
	return Job{ID: "m", Profile: profiles[0], Alternatives: profiles[1:], By: by}
}

func TestMoldable(t *testing.T) {
	small, middle, large := Profile{{120, 2}}, Profile{{70, 4}}, Profile{{40, 8}}
	upTo := func(end int64, nodes int) []Busy { return []Busy{{0, end, nodes}} }
	grows := Profile{{10, 1}, {10, 8}}
	for _, c := range []struct {
		name   string
		busy   []Busy
		job    Job
		choice int
		start  int64
	}{
		{"on a free cluster the largest completes first", nil, moldable(ByCompletion, small, middle, large), 2, 0},
		{"half of it is free: the middle one, at once", upTo(100, 4), moldable(ByCompletion, small, middle, large), 1, 0},
		{"soon all of it is: worth the wait", upTo(20, 4), moldable(ByCompletion, small, middle, large), 2, 20},
		{"a second too late for that", upTo(31, 4), moldable(ByCompletion, small, middle, large), 1, 0},
		{"as early as another, with fewer node-seconds", upTo(30, 4), moldable(ByCompletion, small, middle, large), 1, 0},
		{"the fewest node-seconds, however late", upTo(1000, 7), moldable(ByNodeHours, small, middle, large), 0, 1000},
		{"of equal ones the first", nil, moldable(ByCompletion, middle, middle), 0, 0},
		{"as many node-seconds: what completes first", nil, moldable(ByNodeHours, Profile{{80, 2}}, Profile{{40, 4}}, Profile{{20, 8}}), 2, 0},
		{"nothing is wasted by either: what completes first", nil, moldable(ByWaste, small, large), 1, 0},
		{"one larger than the cluster is no choice", nil, moldable(ByCompletion, Profile{{1, 9}}, small), 1, 0},
		{"whole profiles", upTo(50, 4), moldable(ByCompletion, grows, Profile{{20, 2}, {15, 4}}), 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Problem{Nodes: 8, Busy: c.busy, Jobs: []Job{c.job}}
			got, err := mustStrategy(t, "noX").Plan(p)
			must.OK(t, err)
			want := Schedule{{Start: c.start, Steps: c.job.Choice(c.choice), Choice: c.choice}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMoldableWaste checks a case in which the last step's nodes are free only from second 60 on,
// the first step's only until second 5. The step between must then waste its node for 50 s.
func TestMoldableWaste(t *testing.T) {
	waits, steady := Profile{{5, 4}, {5, 1}, {15, 8}}, Profile{{5, 2}, {90, 2}}
	p := Problem{Nodes: 8, Busy: []Busy{{0, 5, 4}, {5, 55, 6}}, Jobs: []Job{moldable(ByCompletion, waits, steady)}}
	for by, want := range map[Preference]int{ByCompletion: 0, ByWaste: 1, ByNodeHours: 1} { // 195 node-seconds, 190
		p.Jobs[0].By = by
		got, err := mustStrategy(t, "infX").Plan(p)
		if err != nil || got[0].Choice != want {
			t.Errorf("%v: %v, %v, want %d", by, got, err, want)
		}
	}
}

// alone returns the placement of each alternative over what is in use, and the best one's index.
func alone(p Problem, s Schedule, i int, l Strategy) (all []Placement, best int) {
	sub := Problem{Nodes: p.Nodes, Busy: slices.Clone(p.Busy)}
	for _, placed := range s[:i] {
		at := placed.Start
		for _, step := range placed.Steps {
			sub.Busy = append(sub.Busy, Busy{at, step.Duration, step.Nodes})
			at += step.Duration
		}
	}
	best = -1
	for k := range p.Jobs[i].Choices() {
		j := p.Jobs[i].Settled(k)
		sub.Jobs = []Job{j}
		placed := Placement{}
		if j.Profile.Peak() <= p.Nodes {
			if one, err := l.Plan(sub); err == nil {
				placed = one[0]
				placed.Choice = k
				if best < 0 || p.Jobs[i].Prefers(placed, all[best]) {
					best = k
				}
			}
		}
		all = append(all, placed)
	}
	return all, best
}

// TestMoldableIsBest checks that every job gets the alternative that is best when each is planned
// alone behind the earlier jobs, whatever the list and the strategy. So it is never worse off than
// with its first. The options must say the same, and the plan must be valid.
func TestMoldableIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawMoldable(t, 6)
		name := rapid.SampledFrom([]string{"noX", "2X", "infX+c", "minwaste", "2X+m"}).Draw(t, "strategy")
		l, err := StrategyByName(name)
		must.OK(t, err)
		s, err := l.Plan(p)
		if err != nil {
			if !errors.As(err, new(*FitError)) {
				t.Fatal(err)
			}
			return
		}
		must.OK(t, Verify(p, s, ExpandLimitOf(l)))
		options := Options(p, s, ExpandLimitOf(l))
		for i, j := range p.Jobs {
			if !j.IsMoldable() {
				if options[i] != nil {
					t.Fatalf("job %d has options", i+1)
				}
				continue
			}
			all, best := alone(p, s, i, l)
			if diff := cmp.Diff(all[best], s[i]); diff != "" {
				t.Fatalf("job %d (-best of all +plan):\n%s", i+1, diff)
			}
			for k, o := range options[i] {
				if o.Fits != (len(all[k].Steps) > 0) || o.Fits && o.End() != all[k].End() {
					t.Fatalf("job %d, alternative %d: %+v, alone %+v", i+1, k+1, o, all[k])
				}
			}
		}
	})
}

// TestMoldableRigid checks that lists without a choice, or with equal alternatives, are planned as
// before.
func TestMoldableRigid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProblem(t, 6)
		l, err := StrategyByName(rapid.SampledFrom([]string{"rigid", "noX", "2X+c", "minwaste"}).Draw(t, "strategy"))
		must.OK(t, err)
		want, wantErr := l.Plan(p)
		same := Problem{Nodes: p.Nodes, Busy: p.Busy}
		for _, j := range p.Jobs {
			j.Alternatives = []Profile{j.Profile}
			same.Jobs = append(same.Jobs, j)
		}
		got, err := l.Plan(same)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, %v (-one +two):\n%s", wantErr, err, diff)
		}
	})
}

// knowsNothing hides that a strategy knows alternatives.
type knowsNothing struct{ Strategy }

func (knowsNothing) Moldable() bool             { return false }
func (k knowsNothing) ExpandLimit() ExpandLimit { return ExpandLimitOf(k.Strategy) }

// TestMoldableUnknown checks that a strategy that knows no alternatives is asked about one profile
// of each job, the one from list order.
func TestMoldableUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := plannertest.DrawMoldable(t, 5)
		pool := Pool{Nodes: problem.Nodes}
		for _, j := range problem.Jobs {
			pool.Jobs = append(pool.Jobs, PoolJob{Job: j, Driver: -1})
		}
		noX, _ := StrategyByName("noX")
		want, err := pool.Plan(noX)
		must.OK(t, err)
		got, err := pool.Plan(knowsNothing{noX})
		must.OK(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-knows +settled):\n%s", diff)
		}
	})
}

// TestMoldablePool checks that node IDs are found for the chosen alternatives, whatever is in use.
func TestMoldablePool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		problem := plannertest.DrawMoldable(t, 4)
		pool := Pool{Nodes: problem.Nodes}
		for range rapid.IntRange(0, 5).Draw(t, "busy nodes") {
			start := rapid.Int64Range(0, 30).Draw(t, "from")
			pool.Busy = append(pool.Busy, NodeBusy{rapid.IntRange(0, pool.Nodes-1).Draw(t, "node"), start, start + rapid.Int64Range(1, 30).Draw(t, "for")})
		}
		reserved := rapid.Bool().Draw(t, "reserved")
		if reserved {
			pool.Reserved = reservedOn(20, 40, 0)
		}
		for _, j := range problem.Jobs {
			one := PoolJob{Job: j, Driver: Lowest}
			for k := range j.Choices() {
				one.AlternativeLimits = append(one.AlternativeLimits, []int64{j.Choice(k).Duration() + 1})
			}
			pool.Jobs = append(pool.Jobs, one)
		}
		l, _ := StrategyByName(rapid.SampledFrom([]string{"rigid", "noX", "2X", "search"}).Draw(t, "strategy"))
		got, err := pool.Plan(l)
		must.OK(t, err)
		for i, planned := range got {
			j := problem.Jobs[i]
			if planned.Unfit != "" {
				continue
			}
			asked := j.Choice(planned.Choice)
			if len(planned.Nodes) != len(asked) || len(planned.Steps) != len(asked) {
				t.Fatalf("job %d: %d steps of alternative %d, %v", i+1, len(planned.Nodes), planned.Choice+1, asked)
			}
			for k, nodes := range planned.Nodes {
				if len(nodes) < asked[k].Nodes {
					t.Fatalf("job %d, step %d: nodes %v of alternative %v", i+1, k+1, nodes, asked)
				}
			}
			if j.IsMoldable() && (len(planned.Options) != j.Choices() || !cmp.Equal(planned.Options[planned.Choice].Placement, planned.Placement)) {
				t.Fatalf("job %d: options %+v of %+v", i+1, planned.Options, planned.Placement)
			}
		}
	})
}

// TestMoldableReserved checks that an alternative is taken that ends before a maintenance begins,
// if a longer one would have to wait for its end.
func TestMoldableReserved(t *testing.T) {
	job := PoolJob{Job: moldable(ByCompletion, Profile{{3600, 1}}, Profile{{900, 2}}), Driver: Lowest, AlternativeLimits: [][]int64{{3700}, {1000}}}
	for _, c := range []struct {
		from, to int64
		by       Preference
		choice   int
		start    int64
	}{
		{1000, 2000, ByCompletion, 1, 0},
		{999, 2000, ByCompletion, 1, 2000},
		{3700, 9000, ByNodeHours, 1, 0}, // half the node-seconds
		{999, 2000, ByNodeHours, 1, 2000},
	} {
		job.By = c.by
		got, err := Pool{Nodes: 2, Reserved: reservedOn(c.from, c.to, 0, 1), Jobs: []PoolJob{job}}.Plan(mustStrategy(t, "noX"))
		if err != nil || got[0].Choice != c.choice || got[0].Start != c.start || len(got[0].Options) != 2 {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	long := PoolJob{Job: moldable(ByCompletion, Profile{{3600, 2}}, Profile{{4000, 1}}), Driver: Lowest, AlternativeLimits: [][]int64{{3700}, {4100}}}
	got, err := Pool{Nodes: 2, Reserved: reservedOn(3000, 20000, 1), Jobs: []PoolJob{long}}.Plan(mustStrategy(t, "noX"))
	if err != nil || got[0].Choice != 1 || got[0].Start != 0 {
		t.Errorf("one node beside the maintenance: %+v, %v", got, err)
	}
}

// TestMoldableAgain checks that a plan kept while time passes equals a new plan.
func TestMoldableAgain(t *testing.T) {
	noX := mustStrategy(t, "noX")
	rapid.Check(t, func(t *rapid.T) {
		problem := plannertest.DrawMoldable(t, 4)
		make := func(by int64) Pool {
			pool := Pool{Nodes: problem.Nodes}
			for n := range pool.Nodes / 2 {
				pool.Busy = append(pool.Busy, NodeBusy{n, -by, 30 + int64(n) - by})
			}
			for _, j := range problem.Jobs {
				j.Submit, j.ExpandLimit = 0, 1
				pool.Jobs = append(pool.Jobs, PoolJob{Job: j, Driver: -1})
			}
			return pool
		}
		_, last, err := make(0).PlanAgain(noX, 100, nil)
		must.OK(t, err)
		by := rapid.Int64Range(1, 40).Draw(t, "later")
		got, _, err := make(by).PlanAgain(noX, 100+by, last)
		must.OK(t, err)
		want, err := make(by).Plan(noX)
		must.OK(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-fresh +kept):\n%s", diff)
		}
	})
}

// TestMoldableSearch checks that list order gives the first job all nodes for a while, while a
// search finds that both run side by side with a smaller alternative.
func TestMoldableSearch(t *testing.T) {
	p := Problem{Nodes: 8, Jobs: []Job{
		moldable(ByCompletion, Profile{{100, 4}}, Profile{{90, 8}}),
		moldable(ByCompletion, Profile{{100, 4}}, Profile{{95, 5}}),
	}}
	list, err := mustStrategy(t, "noX").Plan(p)
	must.OK(t, err)
	if m := Measure(p, list); m.Makespan != 185 || list[0].Choice != 1 {
		t.Fatalf("list order: %+v", list)
	}
	for _, o := range []Search{{}, {Objective: MeanCompletion}, {Limit: 2}, {Objective: MeanCompletion, Limit: 2}} {
		r, err := o.Optimise(p)
		must.OK(t, err)
		if m := Measure(p, r.Schedule); m.Makespan != 100 || r.Bound.Value > r.Objective {
			t.Errorf("%s, %v: makespan %d of %+v, bound %+v", o.Name(), o.Objective, m.Makespan, r.Schedule, r.Bound)
		}
	}
	cheap := p
	cheap.Jobs = slices.Clone(p.Jobs)
	cheap.Jobs[1] = moldable(ByNodeHours, Profile{{100, 8}}, Profile{{300, 1}})
	r, err := Search{}.Optimise(cheap)
	if err != nil || r.Schedule[1].Choice != 1 {
		t.Errorf("a job that prefers few node-hours got alternative %d: %v", r.Schedule[1].Choice+1, err)
	}
}
