package simulate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// malleables returns jobs on eight nodes, half of them malleable.
func malleables(t testing.TB, seed uint64) simulate.Experiment {
	e := experiment(t, 3*(seed%2)+seed%2) // merge or companion
	chance := rand.New(rand.NewPCG(seed, 7))
	e.Jobs = nil
	at := int64(0)
	for i := range 10 {
		at += chance.Int64N(200)
		s := simulate.Submission{ID: fmt.Sprint(i), Submit: at, User: chance.IntN(3), Profile: planner.Profile{{Duration: 60 + chance.Int64N(900), Nodes: 1 + chance.IntN(8)}}}
		if n := s.Profile[0].Nodes; n > 1 && chance.IntN(2) == 0 {
			s.Least, s.Most = 1+chance.IntN(n-1), min(n+chance.IntN(2), 8)
		}
		e.Jobs = append(e.Jobs, s)
	}
	return e
}

// nodeSeconds returns those that a job had.
func nodeSeconds(j simulate.JobResult) (sum int64) {
	for k := range len(j.Sizes) - 1 {
		sum += int64(j.Sizes[k].Nodes) * (j.Sizes[k+1].At - j.Sizes[k].At)
	}
	return sum
}

// TestMalleableWork checks that a malleable job ends when its work is done, the same node-seconds
// at all sizes, apart from the cost of changes. It must stay within its bounds, and skipped polls
// must change nothing. In the first two seeds a job ends after a rest and is never seen COMPLETING.
func TestMalleableWork(t *testing.T) {
	first, changes := rand.Uint64N(1<<32), 0
	for _, seed := range []uint64{1111, 4231348121, first, first + 1, first + 2, first + 3, first + 4, first + 5} {
		e := malleables(t, seed)
		r := outcome(t, e)
		e.EveryPoll = true
		all := outcome(t, e)
		r.Metrics.LeftOut = 0
		if diff := gocmp.Diff(all, r); diff != "" {
			t.Errorf("seed %d: with all polls (-) and without some (+):\n%s", seed, diff)
		}
		for i, j := range r.Jobs {
			s := e.Jobs[i]
			if j.State != "COMPLETED" || j.Area != s.Profile.Area() || j.Evolving != s.Malleable() {
				t.Errorf("seed %d: %+v", seed, j)
			}
			if !s.Malleable() || e.Config.Drive == drivemode.Companion { // whose further nodes are other Slurm jobs
				continue
			}
			for _, size := range j.Sizes[:len(j.Sizes)-1] {
				if size.Nodes < s.Least || size.Nodes > s.Most {
					t.Errorf("seed %d: job %s of %d to %d nodes has %v", seed, j.ID, s.Least, s.Most, j.Sizes)
				}
			}
			// Of a change it has the nodes for some seconds and does not work on them yet, or not any more.
			n := len(j.Sizes) - 2
			changes += n
			if over := nodeSeconds(j) - j.Area; over < -int64(s.Most) || over > int64(s.Most*(8*n+10)) {
				t.Errorf("seed %d: job %s has %d node-seconds, %d are its work: %v", seed, j.ID, nodeSeconds(j), j.Area, j.Sizes)
			}
		}
	}
	if changes == 0 {
		t.Error("no job changed its size")
	}
}

// TestMalleableSpeedup checks that a job that has the machine to itself grows to its maximum and is
// then as fast as its speed-up says.
func TestMalleableSpeedup(t *testing.T) {
	for _, test := range []struct {
		speedup malleable.Speedup
		lasts   int64
	}{{nil, 500}, {malleable.Amdahl(1), 500}, {malleable.Amdahl(0), 1000}, {malleable.Table{{Nodes: 1, Speedup: 1}, {Nodes: 4, Speedup: 2}, {Nodes: 8, Speedup: 2.5}}, 800}} {
		e := simulate.Experiment{Config: config.Default(), Strategy: noX(t), Cluster: slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true},
			Jobs: []simulate.Submission{{ID: "m", Profile: planner.Profile{{Duration: 1000, Nodes: 4}}, Least: 1, Most: 20, Speedup: test.speedup}}}
		j := outcome(t, e).Jobs[0]
		most := slices.MaxFunc(j.Sizes, func(a, b simulate.Size) int { return a.Nodes - b.Nodes }).Nodes
		if lasts := j.End - j.Start; most != 8 || lasts < test.lasts || lasts > test.lasts+20 {
			t.Errorf("%v: %d s, sizes %v; want %d s and 8 nodes", test.speedup, lasts, j.Sizes, test.lasts)
		}
		rigid, err := e.Beside(context.Background(), simulate.Slurm)
		must.OK(t, err)
		if r := rigid.Jobs[0]; r.End-r.Start != 1000 || len(r.Sizes) != 2 || r.Sizes[0].Nodes != 4 || !r.Evolving {
			t.Errorf("%v: as a rigid job %+v", test.speedup, r)
		}
	}
}

// TestMalleableNever: what cannot run is refused, and says why.
func TestMalleableNever(t *testing.T) {
	for want, s := range map[string]simulate.Submission{
		"it asks for at least 9 nodes, the cluster has 8":                                                          {Profile: planner.Profile{{Duration: 100, Nodes: 16}}, Least: 9, Most: 16},
		"step 1: duration is 2147483648, must be at most 2147483647 seconds":                                       {Profile: planner.Profile{{Duration: planner.MaxDuration, Nodes: 4}}, Least: 1, Most: 4},
		"a chain cannot be malleable: its steps are Slurm jobs of their own, which are not resized while they run": {Profile: planner.Profile{{Duration: 100, Nodes: 4}}, Least: 1, Most: 4},
	} {
		e := simulate.Experiment{Config: config.Default(), Strategy: noX(t), Cluster: slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true}, Jobs: []simulate.Submission{s}}
		if want[0] == 'a' {
			e.Config.Drive = drivemode.Chain
		}
		if j := outcome(t, e).Jobs[0]; j.State != simulate.Refused || j.Reason != want {
			t.Errorf("%s: %s; want %s", j.State, j.Reason, want)
		}
	}
}

// TestFromTraceKinds: the sizes of all kinds are counted by nodes.
func TestFromTraceKinds(t *testing.T) {
	step := func(seconds int64, n int) planner.Profile { return planner.Profile{{Duration: seconds, Nodes: n}} }
	job := func(s *trace.Shape) trace.Job {
		j := trace.Unknown
		j.Number, j.Submit, j.Run, j.Wanted, j.Limit, j.User, j.Shape = 1, 0, 100, 8, 200, 3, s
		return j
	}
	tr := trace.Trace{Jobs: []trace.Job{
		job(&trace.Shape{Kind: trace.Moldable, Profile: step(100, 8), Alternatives: []planner.Profile{step(200, 4), step(60, 15)}}),
		job(&trace.Shape{Kind: trace.Malleable, Profile: step(100, 8), Min: 2, Max: 9, Speedup: malleable.Amdahl(.5)}),
		job(&trace.Shape{Kind: trace.Malleable, Profile: step(100, 8), Min: 5, Max: 8}),
		job(&trace.Shape{Kind: trace.Evolving, Profile: append(step(100, 3), step(50, 8)...)}),
		job(nil),
	}}
	want := []simulate.Submission{
		{Profile: step(100, 2), Alternatives: []planner.Profile{step(100, 2), step(200, 1), step(60, 4)}},
		{Profile: step(100, 2), Least: 1, Most: 3, Speedup: malleable.Amdahl(.5)},
		{Profile: step(100, 2), Limit: 200}, // of two nodes, and no others
		{Profile: append(step(100, 1), step(50, 2)...)},
		{Profile: step(100, 2), Limit: 200},
	}
	for i := range want {
		want[i].ID, want[i].User = "1", 3
	}
	if diff := gocmp.Diff(want, simulate.FromTrace(tr, 4, 16, 0, 1)); diff != "" {
		t.Error(diff)
	}
}

// TestTooLong: an experiment that no clock can count ends, and says so. (As far as 136 years are a minute
// of processor time; a week is none.)
func TestTooLong(t *testing.T) {
	const week = 7 * 24 * 3600
	defer simulate.SetLongest(week * time.Second)()
	e := simulate.Experiment{Config: config.Default(), Strategy: noX(t), Cluster: slurmsim.Options{Nodes: 2, Accounting: true}}
	for i := range int64(2) {
		e.Jobs = append(e.Jobs, simulate.Submission{Submit: 100 * (1 + i), Profile: planner.Profile{{Duration: 2 * week, Nodes: 1}}})
	}
	if r, err := e.Run(context.Background()); err == nil || err.Error() != "after 604800 seconds 2 of 2 jobs have not ended: more cannot be run" {
		t.Errorf("%v, %+v", err, r)
	}
}

func noX(t testing.TB) planner.Strategy {
	s, err := planner.StrategyByName("noX")
	must.OK(t, err)
	return s
}
