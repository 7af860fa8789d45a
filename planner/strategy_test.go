package planner

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/internal/naive"
	"github.com/evoslurm/evoslurm/planner/internal/plannertest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestTwoAppsOneAfterTheOther is the paper's example against Moab (section 2):
// two applications hold half the platform each and both want more later. They
// must not deadlock but run one after the other.
func TestTwoAppsOneAfterTheOther(t *testing.T) {
	p := Problem{Nodes: 10, Jobs: []Job{
		{ID: "a", Profile: Profile{{100, 5}, {100, 8}}},
		{ID: "b", Profile: Profile{{100, 5}, {100, 8}}},
	}}
	want := Schedule{
		{Start: 0, Steps: Profile{{100, 5}, {100, 8}}},
		{Start: 200, Steps: Profile{{100, 5}, {100, 8}}},
	}
	for _, name := range []string{"noX", "2X", "2X+c", "infX", "infX+c"} {
		got, err := mustStrategy(t, name).Plan(p)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestRigid: a job is its peak for its whole duration, and later jobs fill gaps
// without delaying earlier ones (paper, section 5.1).
func TestRigid(t *testing.T) {
	p := Problem{Nodes: 10, Jobs: []Job{
		{ID: "a", Profile: Profile{{100, 1}, {10, 6}, {100, 1}}},
		{ID: "b", Profile: Profile{{100, 5}}},
		{ID: "c", Profile: Profile{{200, 3}, {10, 4}}, ExpandLimit: 2},
	}}
	want := Schedule{
		{Start: 0, Steps: Profile{{210, 6}}},
		{Start: 210, Steps: Profile{{100, 5}}},
		{Start: 0, Steps: Profile{{210, 4}}},
	}
	got, err := mustStrategy(t, "rigid").Plan(p)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := Verify(p.Rigid(), got, 1); err != nil {
		t.Error(err)
	}
}

// TestConditions: the schedules of all strategies keep C1 and C2 (paper, section
// 3.3), per-job limits, submission times and a busy cluster included, and no job
// completes later because of those after it in the list.
func TestConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plannertest.DrawProblem(t, 8)
		name := rapid.SampledFrom(append(PaperStrategies(), "1.5X", "1.5X+c", "3X")).Draw(t, "strategy")
		s, err := StrategyByName(name)
		must.OK(t, err)
		schedule, err := s.Plan(p)
		must.OK(t, err)
		against := p
		if IsRigid(s) {
			against = p.Rigid()
		}
		must.OK(t, Verify(against, schedule, ExpandLimitOf(s)))
		used := make(naive.Timeline, 1000)
		for _, b := range p.Busy {
			used.Add(b.Start, b.Start+b.Duration, b.Nodes)
		}
		for _, placed := range schedule {
			at := placed.Start
			for _, step := range placed.Steps {
				if !used.Free(at, at+step.Duration, step.Nodes, p.Nodes) {
					t.Fatalf("more than %d nodes in use", p.Nodes)
				}
				used.Add(at, at+step.Duration, step.Nodes)
				at += step.Duration
			}
		}
		if len(p.Jobs) > 0 {
			p.Jobs = p.Jobs[:len(p.Jobs)-1]
			shorter, err := s.Plan(p)
			if err != nil || !cmp.Equal(shorter, schedule[:len(p.Jobs)]) {
				t.Fatalf("without the last job: %v, %v", shorter, err)
			}
		}
	})
}

// TestVerifyRejects: every broken condition is found.
func TestVerifyRejects(t *testing.T) {
	p := Problem{Nodes: 10, Busy: []Busy{{0, 50, 4}}, Jobs: []Job{
		{ID: "a", Submit: 5, Profile: Profile{{10, 2}, {10, 6}}, ExpandLimit: 2},
		{ID: "b", Profile: Profile{{10, 4}}},
	}}
	good := func() Schedule {
		return Schedule{{Start: 5, Steps: Profile{{15, 2}, {10, 6}}}, {Start: 50, Steps: Profile{{10, 4}}}}
	}
	must.OK(t, Verify(p, good(), 1))
	for name, c := range map[string]struct {
		condition, reason string
		spoil             func(Schedule) Schedule
	}{
		"missing":     {"C1", "1 placements for 2 jobs", func(s Schedule) Schedule { return s[:1] }},
		"early":       {"C1", "submitted at 5", func(s Schedule) Schedule { s[0].Start = 4; return s }},
		"steps":       {"C1", "1 steps instead of 2", func(s Schedule) Schedule { s[0].Steps = s[0].Steps[:1]; return s }},
		"nodes":       {"C1", "7 nodes instead of 6", func(s Schedule) Schedule { s[0].Steps[1].Nodes = 7; return s }},
		"short":       {"C1", "lasts 9 s instead of 10 s", func(s Schedule) Schedule { s[0].Steps[0].Duration = 9; return s }},
		"long":        {"C1", "at most 20 s", func(s Schedule) Schedule { s[0].Steps[0].Duration = 21; return s }},
		"last":        {"C1", "at most 10 s", func(s Schedule) Schedule { s[1].Steps[0].Duration = 11; return s }},
		"never":       {"C1", "never ends", func(s Schedule) Schedule { s[1].Start = Forever - 3; return s }},
		"overflowing": {"C2", "there are 10", func(s Schedule) Schedule { s[1].Start = 25; return s }},
	} {
		err := Verify(p, c.spoil(good()), 1)
		var verify *VerifyError
		if !errors.As(err, &verify) || verify.Condition != c.condition || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want %s: %s", name, err, c.condition, c.reason)
		}
	}
	// Others use too much only before the job comes, though as many nodes are in use after.
	over := Problem{Nodes: 10, Busy: []Busy{{0, 10, 12}, {10, 10, 8}}, Jobs: []Job{{Submit: 10, Profile: Profile{{10, 4}}}}}
	if err := Verify(over, Schedule{{Start: 10, Steps: Profile{{10, 4}}}}, 1); err == nil || !strings.Contains(err.Error(), "12 nodes in use from second 10 on, there are 10") {
		t.Errorf("no room for a job: %v", err)
	}
}

func TestStrategyByName(t *testing.T) {
	for _, name := range append(PaperStrategies(), "1.5X", "3X+c", "1X") {
		if s := mustStrategy(t, name); s.Name() != name {
			t.Errorf("%s is called %s", name, s.Name())
		}
	}
	for _, name := range []string{"", "X", "+c", "noX+c", "rigid+c", "0X", "0.5X", "-1X", "NaNX", "2x", "2X+C", "2X+c+c", "2", "InfX", "1e9X"} {
		if _, err := StrategyByName(name); err == nil {
			t.Errorf("%q is a strategy", name)
		}
	}
}

func TestProblemErrors(t *testing.T) {
	job := func(j Job) Problem { return Problem{Nodes: 10, Jobs: []Job{{ID: "fine", Profile: Profile{{1, 1}}}, j}} }
	for text, p := range map[string]Problem{
		"nodes: 0 is not within 1":                       {},
		"busy[0].nodes: -1":                              {Nodes: 1, Busy: []Busy{{0, 1, -1}}},
		"busy[1].duration: -5 is negative":               {Nodes: 1, Busy: []Busy{{0, 1, 1}, {0, -5, 1}}},
		"busy[0].start: 9223372036854775807 is":          {Nodes: 1, Busy: []Busy{{Forever, 1, 1}}},
		`job 2 ("x"): profile: profile has no steps`:     job(Job{ID: "x"}),
		`job 2 ("x"): profile: step 1: duration is 0`:    job(Job{ID: "x", Profile: Profile{{0, 1}}}),
		`job 2 ("x"): profile: needs 11 nodes`:           job(Job{ID: "x", Profile: Profile{{1, 11}}}),
		`job 2 ("x"): submit: 9223372036854775807`:       job(Job{ID: "x", Submit: Forever, Profile: Profile{{1, 1}}}),
		`job 2 ("x"): expand_limit: expand limit 0.5 is`: job(Job{ID: "x", Profile: Profile{{1, 1}}, ExpandLimit: 0.5}),
	} {
		for _, name := range []string{"noX", "rigid"} {
			_, err := mustStrategy(t, name).Plan(p)
			if err == nil || !strings.HasPrefix(err.Error(), text) {
				t.Errorf("%s: got %v, want %s", name, err, text)
			}
		}
	}
	forever := job(Job{ID: "x", Profile: Profile{{1, 10}}})
	forever.Busy = []Busy{{0, Forever, 1}}
	var fit *FitError
	if _, err := mustStrategy(t, "noX").Plan(forever); !errors.As(err, &fit) || fit.Job != 1 || fit.ID != "x" {
		t.Errorf("busy forever: %v", err)
	}
}

// TestLongProfile: ten thousand steps neither overflow the stack nor the clock.
func TestLongProfile(t *testing.T) {
	p := Problem{Nodes: 10, Jobs: []Job{{ID: "long"}, {ID: "second"}}}
	for i := range 10_000 {
		p.Jobs[0].Profile = append(p.Jobs[0].Profile, Step{MaxDuration, 1 + i%10})
	}
	p.Jobs[1].Profile = p.Jobs[0].Profile
	for _, name := range PaperStrategies() {
		s := mustStrategy(t, name)
		schedule, err := s.Plan(p)
		must.OK(t, err)
		against := p
		if IsRigid(s) {
			against = p.Rigid()
		}
		if err := Verify(against, schedule, ExpandLimitOf(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNearOverflow: the largest times and counts that pass the checks give a valid
// plan or a clear error, never a wrong plan.
func TestNearOverflow(t *testing.T) {
	step := Step{Duration: MaxDuration, Nodes: MaxNodes}
	late := Job{ID: "late", Submit: exact.Horizon - 10, Profile: Profile{step}, ExpandLimit: 1e9}
	p := Problem{Nodes: MaxNodes, Busy: []Busy{{exact.Horizon - 5, Forever - 1, MaxNodes - 1}, {-exact.Horizon, 3, MaxNodes}}, Jobs: []Job{
		{ID: "a", Submit: -exact.Horizon, Profile: Profile{step, step, step}, ExpandLimit: Infinite},
		{ID: "b", Profile: slices.Repeat(Profile{step}, 1000), ExpandLimit: 1e9},
	}}
	for _, name := range append(PaperStrategies(), "1.000001X+c", "1000000000X") {
		s := mustStrategy(t, name)
		schedule, err := s.Plan(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		against := p
		if IsRigid(s) {
			against = p.Rigid()
		}
		if err := Verify(against, schedule, ExpandLimitOf(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if m := Measure(p, schedule); m.Waste < 0 || m.Utilisation < 0 {
			t.Errorf("%s: %+v", name, m)
		}
		q := p
		q.Jobs = append(slices.Clone(p.Jobs), late)
		if _, err := s.Plan(q); !errors.As(err, new(*FitError)) {
			t.Errorf("%s: a job beyond the end of time: %v", name, err)
		}
	}
}

func TestBeyondPaperNames(t *testing.T) {
	for _, name := range append(Strategies(), "2X+m", "infX+m", "search+2X", "search+1.5X", "search+fair+2X", "energy", "energy+3600s") {
		if s := mustStrategy(t, name); s.Name() != name {
			t.Errorf("%s is called %s", name, s.Name())
		}
	}
	for _, name := range []string{"search+", "search+2", "search2X", "search+0.5X", "search+fair+", "searching", "energy+", "energetic", "X+m", "0X+m", "minwaste+c"} {
		if s, err := StrategyByName(name); err == nil {
			t.Errorf("%q is strategy %s", name, s.Name())
		}
	}
}
