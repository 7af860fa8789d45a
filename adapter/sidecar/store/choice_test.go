package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestChoice: the strategy in use outlives its process, and half a change is none.
func TestChoice(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "evoslurm.db")
	s := open(t, path)
	expect := func(want *Choice) {
		t.Helper()
		s.Close()
		s = open(t, path)
		got, err := s.Choice(ctx)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("read again: %v\n%s", err, cmp.Diff(want, got))
		}
	}
	expect(nil)
	first := &Choice{Strategy: "klein", Parameters: map[string]string{"expand_limit": "1.5"}, By: "root", At: time.Unix(1_800_000_000, 0), Instead: "noX"}
	second := &Choice{Strategy: "search", By: "alice", At: time.Unix(1_800_000_001, 0), Instead: "2X"}
	for _, c := range []*Choice{first, second, first} {
		if err := s.SetChoice(ctx, c); err != nil {
			t.Fatal(err)
		}
		expect(c)
	}
	crash := errors.New("crash")
	for _, c := range []*Choice{second, nil} {
		err := s.Together(ctx, func(tx *Store) error {
			return errors.Join(tx.SetChoice(ctx, c), tx.AddEvent(ctx, 0, time.Now(), "strategy", nil), crash)
		})
		if !errors.Is(err, crash) {
			t.Fatal(err)
		}
		expect(first)
	}
	if err := s.SetChoice(ctx, nil); err != nil {
		t.Fatal(err)
	}
	expect(nil)
	if events, err := s.Events(ctx, 0, 0, 10); err != nil || len(events) != 0 {
		t.Errorf("events of changes that were not made: %v, %v", events, err)
	}
}

// TestPolicy: the malleability policy is another choice than the strategy.
func TestPolicy(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "evoslurm.db")
	s := open(t, path)
	want := &Choice{Strategy: "gain", By: "root", At: time.Unix(1_800_000_000, 0), Instead: "egs"}
	if err := s.SetPolicy(ctx, want); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, path)
	got, err1 := s.Policy(ctx)
	strategy, err2 := s.Choice(ctx)
	if err := errors.Join(err1, err2, s.SetPolicy(ctx, nil)); err != nil || strategy != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v, %v", got, strategy, err)
	}
	if got, err := s.Policy(ctx); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
