package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// mixed returns an experiment with jobs of all kinds, by any strategy.
func mixed(t *testing.T, chance *rand.Rand) simulate.Experiment {
	e := experiment(t, chance.Uint64N(1000))
	all := planner.Strategies()
	e.Config.Strategy = all[chance.IntN(len(all))]
	var err error
	if e.Strategy, err = planner.StrategyByName(e.Config.Strategy); err != nil {
		t.Fatal(err)
	}
	if _, slow := e.Strategy.(planner.Search); slow {
		e.Jobs = e.Jobs[:3]
	}
	e.EveryPoll = chance.IntN(4) == 0
	e.Cluster.Latency.Spread = []float64{0, 0.1}[chance.IntN(2)]
	kinds := 4
	if chance.IntN(5) == 0 {
		kinds = 1 // stock jobs, without a sidecar
	}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		switch kind := chance.IntN(kinds); {
		case kinds == 1:
			j.Profile = j.Profile[:1]
		case kind == 0:
			j.Profile, j.Limit, j.Least, j.Most = j.Profile[:1], 0, 1, 2+chance.IntN(6)
			j.Speedup = malleable.Amdahl(0.9)
		case kind == 1 && e.Config.Drive != drivemode.Chain: // whose alternatives must have as many steps
			j.Alternatives, j.Limit = []planner.Profile{j.Profile, {{Duration: 200, Nodes: 2}}}, 0
		}
	}
	return e
}

// stopped runs an experiment up to a second and returns the checkpoint as another process reads it.
func stopped(t *testing.T, e simulate.Experiment, until int64) (c *simulate.Checkpoint) {
	e.Until, e.Left = until, func(at *simulate.Checkpoint) {
		var err error
		if c, err = simulate.DecodeCheckpoint(at.Encode("v1"), "v1"); err != nil {
			t.Fatal(err)
		}
	}
	outcome(t, e)
	return c
}

// TestCheckpoint checks that an experiment that is stopped at random seconds and resumed equals an uninterrupted one.
func TestCheckpoint(t *testing.T) {
	times := 0
	for range 16 {
		seed := rand.Uint64()
		chance := rand.New(rand.NewPCG(seed, 0))
		e := mixed(t, chance)
		whole := outcome(t, e)
		again := e
		for until := int64(0); until < whole.Metrics.Makespan; times++ {
			until += 1 + chance.Int64N(whole.Metrics.Makespan)
			c := stopped(t, again, until)
			if c == nil {
				break // it was over by then
			}
			if c.Strategy != e.Strategy.Name() || c.Second < until {
				t.Fatalf("seed %d, until %d: %s at %d", seed, until, c.Strategy, c.Second)
			}
			until, again.Resume = c.Second, c
			if diff := gocmp.Diff(whole, outcome(t, again)); diff != "" {
				t.Fatalf("seed %d, %s, resumed at %d: %s", seed, c.Strategy, c.Second, diff)
			}
		}
	}
	if times == 0 {
		t.Error("no run was stopped")
	}
}

// TestCheckpointContinued checks that a run that its context ends can be resumed, that the rest may
// run by another strategy, and that a checkpoint of another experiment is rejected.
func TestCheckpointContinued(t *testing.T) {
	for seed := range uint64(6) {
		e := experiment(t, seed)
		whole := outcome(t, e)
		var at *simulate.Checkpoint
		ctx, stop := context.WithCancel(t.Context())
		broken := e
		broken.Left, broken.Progress = func(c *simulate.Checkpoint) { at = c }, func(int) { stop() }
		if _, err := broken.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		again := e
		if again.Resume = at; at != nil {
			if diff := gocmp.Diff(whole, outcome(t, again)); diff != "" {
				t.Errorf("resumed at %d: %s", at.Second, diff)
			}
		}

		other := e
		other.Resume = stopped(t, e, 400)
		var err error
		if other.Then, err = planner.StrategyByName("infX+c"); err != nil {
			t.Fatal(err)
		}
		r := outcome(t, other)
		if want := fmt.Sprintf("%s, from second %d on infX+c", whole.Strategy, other.Resume.Second); r.Strategy != want || r.Metrics.Unfinished != whole.Metrics.Unfinished {
			t.Errorf("%q, want %q; %+v", r.Strategy, want, r.Metrics)
		}
		for i, j := range r.Jobs { // the past is unchanged
			if was := whole.Jobs[i]; was.Start >= 0 && was.Start < other.Resume.Second && j.Start != was.Start {
				t.Errorf("job %s starts at %d, and did at %d", j.ID, j.Start, was.Start)
			}
		}

		foreign := experiment(t, seed+20)
		foreign.Resume = other.Resume
		if _, err := foreign.Run(t.Context()); !errors.As(err, new(simulate.NotTheSame)) {
			t.Errorf("of another experiment: %v", err)
		}
	}
}

// TestCheckpointRefused checks that a file that is no checkpoint of this version is rejected.
func TestCheckpointRefused(t *testing.T) {
	file := stopped(t, experiment(t, 1), 400).Encode("v1")
	for want, bad := range map[string][]byte{
		"no checkpoint of evosim run": []byte("{}\n"),
		"it is of version v2":         stopped(t, experiment(t, 1), 400).Encode("v2"),
		"cut short":                   file[:len(file)-1],
		"its checksum does not fit":   append(file[:len(file)-1:len(file)-1], file[len(file)-1]^1),
	} {
		if c, err := simulate.DecodeCheckpoint(bad, "v1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %+v, %v", want, c, err)
		}
	}
}
