package paper

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestGridChangesNothing checks that long queues get the same plan with and without the grid,
// whatever their durations, node counts, limits, submissions, and busy nodes.
func TestGridChangesNothing(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := Problem{Nodes: 1 + random.IntN(1<<random.IntN(21))}
		longest := int64(1) << (1 + random.IntN(20))
		spread := int64(1) << random.IntN(24)
		for range random.IntN(20) {
			p.Busy = append(p.Busy, Busy{random.Int64N(spread), 1 + random.Int64N(10*longest), random.IntN(p.Nodes/20 + 1)})
		}
		if random.IntN(3) == 0 {
			p.Busy = append(p.Busy, Busy{random.Int64N(spread), exact.Forever, p.Nodes / 10})
		}
		origin := int64(0)
		if seed%3 == 1 {
			origin = -random.Int64N(1 << 30)
		}
		for range 10 + random.IntN(300) {
			j := Job{Submit: origin + random.Int64N(spread)/(1+random.Int64N(3))}
			for range 1 + random.IntN(8) {
				j.Profile = append(j.Profile, profile.Step{1 + random.Int64N(longest), 1 + random.IntN(p.Nodes*9/10+1)*9/10})
			}
			if random.IntN(10) == 0 {
				j.ExpandLimit = profile.ExpandLimit(1 + random.IntN(3))
			}
			p.Jobs = append(p.Jobs, j)
		}
		for i := range p.Jobs {
			for k := range p.Jobs[i].Profile {
				p.Jobs[i].Profile[k].Nodes = max(min(p.Jobs[i].Profile[k].Nodes, p.Nodes-p.Nodes/10), 1)
			}
		}
		for _, name := range append(PaperStrategies(), "1.3X+c", "minwaste", "2X+m") {
			fast := mustByName(t, name).(list)
			slow := fast
			slow.plain = true
			got, errGot := fast.Plan(p)
			want, errWant := slow.Plan(p)
			if !cmp.Equal(errGot, errWant) || !cmp.Equal(got, want) {
				t.Fatalf("seed %d, %s: %v, %v (-want +got):\n%.4000s", seed, name, errWant, errGot, cmp.Diff(want, got))
			}
		}
	}
}

// TestGridCandidates checks that queues long enough to keep candidates get the same plan with and
// without the grid.
func TestGridCandidates(t *testing.T) {
	for seed, name := range []string{"rigid", "noX", "noX", "2X+c", "infX", "1.3X+c", "noX", "2X"} {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		p := Problem{Nodes: 1000}
		for range 3000 {
			var j Job
			if seed == 2 {
				j.Submit = random.Int64N(5_000_000)
			}
			for range 1 + random.IntN(6) {
				seconds := 500 + random.Int64N(3100)
				if seed >= 6 { // from less than a cell to more cells than a demand covers
					seconds = 1 + random.Int64N(1<<random.IntN(18))
				}
				j.Profile = append(j.Profile, profile.Step{seconds, 1 + random.IntN(750)})
			}
			p.Jobs = append(p.Jobs, j)
		}
		fast := mustByName(t, name).(list)
		slow := fast
		slow.plain = true
		got, err := fast.Plan(p)
		must.OK(t, err)
		want, err := slow.Plan(p)
		must.OK(t, err)
		if !cmp.Equal(got, want) {
			t.Fatalf("%s (-want +got):\n%.4000s", name, cmp.Diff(want, got))
		}
	}
}

// TestNeverEnough checks that a job fits nowhere if nodes that are busy forever leave too few, in
// short and in long queues.
func TestNeverEnough(t *testing.T) {
	for _, jobs := range []int{1, 30, 300} {
		for _, name := range append(PaperStrategies(), "minwaste") {
			p := Problem{Nodes: 4, Busy: []Busy{{-6, 1, 1}, {100, exact.Forever, 2}}}
			for range jobs {
				p.Jobs = append(p.Jobs, Job{Profile: profile.Profile{{30, 1}, {40, 4}, {1, 2}, {25, 2}}})
			}
			schedule, err := mustByName(t, name).Plan(p)
			if jobs == 1 && err == nil && schedule[0].Start >= 0 && schedule[0].End() <= 126 {
				continue // before they are
			}
			if _, ok := errors.AsType[*FitError](err); !ok {
				t.Errorf("%d jobs, %s: %v, %v", jobs, name, schedule, err)
			}
		}
	}
}

func mustByName(t *testing.T, name string) Strategy {
	t.Helper()
	s, err := ByName(name)
	must.OK(t, err)
	return s
}

// TestGridLongObstacle checks that a step passes what is in its way in one go, however long that lasts.
func TestGridLongObstacle(t *testing.T) {
	jobs := []Job{
		{ID: "a", Submit: 7, Profile: profile.Profile{{1, 7}, {12, 1}, {1, 4}, {8, 6}}},
		{ID: "b", Submit: 11, Profile: profile.Profile{{1, 2}, {11, 6}}},
		{ID: "c", Submit: 3, Profile: profile.Profile{{10, 2}, {5, 1}}, ExpandLimit: 3},
	}
	plan := Schedule{{Start: 16, Steps: jobs[0].Profile}, {Start: 38, Steps: jobs[1].Profile}, {Start: 50, Steps: jobs[2].Profile}}
	for end, want := range map[int64]int64{1 << 40: 1 << 40, exact.Forever: -1} {
		p := Problem{Nodes: 7, Busy: []Busy{{-5, 1, 1}, {0, 1, 7}, {1, 10, 8}, {11, 3, 6}, {14, 1, 2}, {15, end - 15, 1}}, Jobs: jobs}
		got, err := Keep(p, plan, 2)
		if want < 0 && !errors.As(err, new(*FitError)) || want >= 0 && (err != nil || got[0].Start != want) {
			t.Errorf("busy until %d: %v, %v", end, got, err)
		}
	}
}

// TestCompactLongObstacle checks that compacting passes such an obstacle in one go as well.
func TestCompactLongObstacle(t *testing.T) {
	const end = 1 << 55
	var res timeline.Timeline
	res.Add(10, end, 1)
	got, ok := Fit(&res, 7, profile.Profile{{1, 7}, {1, 1}, {1, 7}}, FitOptions{NotBefore: 9, Limit: profile.Infinite, Compact: true})
	if want := (profile.Placement{Start: 9, Steps: profile.Profile{{1, 7}, {end - 10, 1}, {1, 7}}}); !ok || !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}
