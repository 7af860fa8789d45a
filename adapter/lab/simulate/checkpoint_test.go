package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/lab/simulate"
	"github.com/evoslurm/evoslurm/planner"
)

// TestCheckpoint checks that an experiment that was stopped, at a second or by its context, and
// resumed equals an uninterrupted one. It may continue with another strategy, and a checkpoint of
// another experiment is rejected.
func TestCheckpoint(t *testing.T) {
	for seed := range uint64(simulate.Sample(6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			e := experiment(t, seed)
			whole := outcome(t, e)
			var at simulate.Checkpoint
			leave := func(c simulate.Checkpoint) { at = c }
			first := e
			first.Until, first.Left = 400, leave
			if cut := outcome(t, first); cut.Metrics.Ended == whole.Metrics.Ended || at.Second < 400 {
				t.Fatalf("%+v, %+v", at, cut.Metrics)
			}
			again := e
			again.Resume = &at
			if diff := gocmp.Diff(whole, outcome(t, again)); diff != "" {
				t.Errorf("resumed at %+v: %s", at, diff)
			}
			second := again // stopped again
			second.Until, second.Left = 600, leave
			before := at
			second.Resume = &before
			outcome(t, second)
			again.Resume = &at
			if diff := gocmp.Diff(whole, outcome(t, again)); at.Second < 600 || diff != "" {
				t.Errorf("resumed at %+v: %s", at, diff)
			}

			ctx, stop := context.WithCancel(t.Context())
			broken := e
			broken.Left, broken.Progress = leave, func(int) { stop() }
			if _, err := broken.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(whole, outcome(t, again)); diff != "" {
				t.Errorf("resumed at %+v: %s", at, diff)
			}

			other := again
			other.Resume = &before
			var err error
			if other.Then, err = planner.StrategyByName("infX+c"); err != nil {
				t.Fatal(err)
			}
			r := outcome(t, other)
			if want := fmt.Sprintf("%s, from second %d on infX+c", whole.Strategy, before.Second); r.Strategy != want || r.Metrics.Unfinished != whole.Metrics.Unfinished {
				t.Errorf("%q, want %q; %+v", r.Strategy, want, r.Metrics)
			}
			for i, j := range r.Jobs { // the past is unchanged
				if was := whole.Jobs[i]; was.Start >= 0 && was.Start < before.Second && j.Start != was.Start {
					t.Errorf("job %s starts at %d, and did at %d", j.ID, j.Start, was.Start)
				}
			}

			foreign := experiment(t, seed+20)
			foreign.Resume = &before
			if _, err := foreign.Run(t.Context()); !errors.As(err, new(simulate.NotTheSame)) {
				t.Errorf("of another experiment: %v", err)
			}
		})
	}
}
