package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
)

// TestSettings: settings outlive their process, and half a change is none.
func TestSettings(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "evoslurm.db")
	s := open(t, path)
	expect := func(want ...Setting) {
		t.Helper()
		s.Close()
		s = open(t, path)
		if got, err := s.Settings(ctx); err != nil || !cmp.Equal(got, want) {
			t.Errorf("read again: %v\n%s", err, cmp.Diff(want, got))
		}
	}
	expect()
	first := Setting{"max_delay", json.RawMessage(`"30m"`), "root", time.Unix(1_800_000_000, 0), "1h0m0s"}
	second := Setting{"max_delay", json.RawMessage(`"5m"`), "alice", time.Unix(1_800_000_001, 0), "1h0m0s"}
	other := Setting{"strategy", json.RawMessage(`{"strategy":"klein"}`), "root", time.Unix(1_800_000_002, 0), "noX"}
	for _, set := range []Setting{first, other, second, first} {
		if err := s.SetSetting(ctx, set); err != nil {
			t.Fatal(err)
		}
	}
	expect(first, other)
	crash := errors.New("crash")
	for _, set := range []Setting{second, {Key: "max_delay"}} {
		err := s.Together(ctx, func(tx *Store) error {
			return errors.Join(tx.SetSetting(ctx, set), tx.AddEvent(ctx, 0, time.Now(), "setting", nil), crash)
		})
		if !errors.Is(err, crash) {
			t.Fatal(err)
		}
	}
	expect(first, other)
	if err := s.SetSetting(ctx, Setting{Key: "strategy"}); err != nil {
		t.Fatal(err)
	}
	expect(first)
	if events, err := s.Events(ctx, 0, 0, 10); err != nil || len(events) != 0 {
		t.Errorf("events of changes that were not made: %v, %v", events, err)
	}
}

// TestUpgradeOfChoices: the strategy and the policy that an earlier release kept are settings now.
func TestUpgradeOfChoices(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "evoslurm.db")
	db, err := sql.Open(driver, path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err == nil {
		_, err = provider.UpTo(ctx, 29)
	}
	for _, table := range []string{"choice", "policy"} {
		_, err2 := db.ExecContext(ctx, `INSERT INTO `+table+` (one, strategy, parameters, by, at, instead) VALUES (1, ?, '{"a":"b"}', 'root', 1800000000, 'noX')`, "of "+table)
		err = errors.Join(err, err2)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	defer s.Close()
	for key, name := range map[string]string{"strategy": "of choice", "malleability policy": "of policy"} {
		want := &Setting{key, json.RawMessage(`{"strategy":"` + name + `","parameters":{"a":"b"}}`), "root", time.Unix(1_800_000_000, 0), "noX"}
		if got, err := s.Setting(ctx, key); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v\n%s", key, err, cmp.Diff(want, got))
		}
	}
}
