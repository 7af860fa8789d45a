package simulate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/adapter/lab/trace"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// experiment returns a small one by a seed: an hour or so.
func experiment(t testing.TB, seed uint64) simulate.Experiment {
	chance := rand.New(rand.NewPCG(seed, 1))
	cfg := config.Default()
	cfg.Drive = []drivemode.Mode{drivemode.Auto, drivemode.Companion, drivemode.Chain}[seed%3]
	if seed%4 == 3 {
		cfg.HoldShares.Partition.Nodes = 40
	}
	strategy, err := planner.StrategyByName([]string{"noX", "2X+c", "infX", "rigid", "minwaste"}[seed%5])
	must.OK(t, err)
	e := simulate.Experiment{Config: cfg, Strategy: strategy, Cluster: slurmsim.Options{Nodes: 8, Accounting: true, PermitJobExpansion: true}}
	at := int64(0)
	for i := range 10 {
		at += chance.Int64N(120)
		s := simulate.Submission{ID: fmt.Sprint(i), Submit: at, User: chance.IntN(3), Profile: planner.Profile{{Duration: 30 + chance.Int64N(400), Nodes: 1 + chance.IntN(5)}}}
		for range chance.IntN(2) * chance.IntN(4) {
			last := s.Profile[len(s.Profile)-1].Nodes
			s.Profile = append(s.Profile, planner.Step{Duration: 30 + chance.Int64N(150), Nodes: 1 + (last+chance.IntN(5))%6})
		}
		if s.Limit = 0; chance.IntN(4) == 0 && !s.Evolves() {
			s.Limit = s.Profile[0].Duration * (1 + chance.Int64N(3))
		}
		e.Jobs = append(e.Jobs, s)
	}
	return e
}

func outcome(t testing.TB, e simulate.Experiment) *simulate.Result {
	r, err := e.Run(context.Background())
	must.OK(t, err)
	return r
}

// TestExperimentOfASite: a site's lists of users keep none of the model's users out.
func TestExperimentOfASite(t *testing.T) {
	e := experiment(t, 0)
	want := outcome(t, e)
	e.Config.Allow.Users, e.Config.Deny.Accounts = []string{"ann"}, []string{"a1"}
	if diff := gocmp.Diff(want, outcome(t, e)); diff != "" {
		t.Error(diff)
	}
}

// TestSkippedPolls compares runs that skip polls with runs that make all.
func TestSkippedPolls(t *testing.T) {
	left := uint64(0)
	for seed := range uint64(10) {
		e := experiment(t, seed)
		some := outcome(t, e)
		e.EveryPoll = true
		all := outcome(t, e)
		sound(t, e, some)
		left += some.Metrics.LeftOut
		t.Logf("seed %d: %d of %d polls left out", seed, some.Metrics.LeftOut, some.Metrics.Polls)
		some.Metrics.LeftOut = 0
		if diff := gocmp.Diff(all, some); diff != "" {
			t.Errorf("seed %d: with all polls (-) and without some (+):\n%s", seed, diff)
		}
	}
	if left == 0 {
		t.Error("no poll was left out")
	}
}

// sound checks what holds of every result.
func sound(t *testing.T, e simulate.Experiment, r *simulate.Result) {
	type change struct{ at, by int }
	var changes []change
	for i, j := range r.Jobs {
		last := 0
		for _, s := range j.Sizes {
			changes = append(changes, change{int(s.At), s.Nodes - last})
			last = s.Nodes
		}
		if j.Start >= 0 && j.Start < j.Submit || j.End >= 0 && j.End < j.Start {
			t.Errorf("job %s: submitted at %d, begun at %d, ended at %d", j.ID, j.Submit, j.Start, j.End)
		}
		for k, s := range j.Steps {
			if want := e.Jobs[i].Profile[k].Nodes; s.Step != k+1 || s.Nodes != want {
				t.Errorf("job %s: step %d is on %d nodes; want step %d on %d", j.ID, s.Step, s.Nodes, k+1, want)
			}
		}
		if j.Evolving && j.State == "COMPLETED" && len(j.Steps) != len(e.Jobs[i].Profile) {
			t.Errorf("job %s: %d steps; want %d", j.ID, len(j.Steps), len(e.Jobs[i].Profile))
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at-b.at, a.by-b.by) })
	used := 0
	for _, c := range changes {
		if used += c.by; used > r.Nodes {
			t.Errorf("%d nodes in use at %d s; there are %d", used, c.at, r.Nodes)
		}
	}
	if m := r.Metrics; m.Utilisation > 100 || m.EffectiveUtilisation > 100 || m.HeldIdle > m.Idle+1 {
		t.Errorf("metrics: %+v", m)
	}
}

// TestEqualSeeds runs the same twice, on one processor and on several.
func TestEqualSeeds(t *testing.T) {
	run := func(procs int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		text, err := json.Marshal(outcome(t, experiment(t, 5)))
		must.OK(t, err)
		return string(text)
	}
	if diff := gocmp.Diff(run(1), run(4)); diff != "" {
		t.Errorf("on one processor (-) and on four (+):\n%s", diff)
	}
}

// BenchmarkTrace runs a trace that EVOSLURM_TRACE names, with a part of its jobs evolving
// that EVOSLURM_EVOLVING gives.
func BenchmarkTrace(b *testing.B) {
	f, err := os.Open(os.Getenv("EVOSLURM_TRACE"))
	if err != nil {
		b.Skip("EVOSLURM_TRACE names no trace")
	}
	defer f.Close()
	t, err := trace.Read(f)
	must.OK(b, err)
	part, most := 0.1, len(t.Jobs)
	fmt.Sscan(os.Getenv("EVOSLURM_JOBS"), &most)
	t.Jobs = t.Jobs[:most]
	fmt.Sscan(os.Getenv("EVOSLURM_EVOLVING"), &part)
	strategy, _ := planner.StrategyByName("noX")
	nodes := t.Header.Machine()
	for b.Loop() {
		begun := time.Now()
		r := outcome(b, simulate.Experiment{Cluster: slurmsim.Options{Nodes: nodes, CPUs: 1, Accounting: true, PermitJobExpansion: true}, Config: config.Default(), Strategy: strategy,
			Jobs: simulate.FromTrace(t, 1, nodes, part, 1), Progress: func(n int) {
				if os.Getenv("EVOSLURM_PROGRESS") != "" {
					fmt.Fprintln(os.Stderr, n, time.Since(begun))
				}
			}})
		r.Jobs = nil
		b.Logf("%+v", r.Metrics)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "MB")
}
