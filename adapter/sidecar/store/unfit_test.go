package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNewerSchema checks that a database of a later release is refused by name and left unchanged.
func TestNewerSchema(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	s := open(t, path)
	if _, err := s.db.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, 1)`); err != nil {
		t.Fatal(err)
	}
	s.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, path)
	if !errors.Is(err, ErrUnfit) || Malformed(err) || !strings.Contains(err.Error(), "schema 9001") {
		t.Errorf("opened: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// TestMalformed checks that a damaged file is recognised as malformed, and that moving it aside
// makes room for a new one.
func TestMalformed(t *testing.T) {
	ctx := context.Background()
	for name, spoil := range map[string]func(path string, text []byte) error{
		"text": func(path string, _ []byte) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database\n", 1000)), 0o600)
		},
		"half": func(path string, text []byte) error { return os.Truncate(path, int64(len(text)/2)) },
		"overwritten pages": func(path string, text []byte) error {
			for i := range text[4096:] {
				text[4096+i] ^= 0x5a
			}
			return os.WriteFile(path, text, 0o600)
		},
		"a table is missing": func(path string, _ []byte) error {
			s := open(t, path)
			defer s.Close()
			_, err := s.db.ExecContext(ctx, `DROP TABLE goose_db_version; CREATE TABLE goose_db_version (x)`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			s := open(t, path)
			for i := range uint32(50) {
				if err := s.AddJob(ctx, sample(i+1)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
				t.Fatal(err)
			}
			s.Close()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(path, text); err != nil {
				t.Fatal(err)
			}
			spoilt, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(ctx, path); !Malformed(err) {
				t.Fatalf("opened: %v", err)
			}
			aside, err := SetAside(path, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := os.ReadFile(aside); err != nil || string(kept) != string(spoilt) {
				t.Errorf("%s is not what it was (%v)", aside, err)
			}
			if jobs, err := open(t, path).ActiveJobs(ctx); err != nil || len(jobs) > 0 {
				t.Errorf("the new database: %v, %v", jobs, err)
			}
		})
	}
}

// TestNotMalformed: circumstances that pass are not taken for a malformed file.
func TestNotMalformed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	open(t, path).Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, path); err == nil || Malformed(err) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := Open(context.Background(), t.TempDir()); err == nil || Malformed(err) {
		t.Errorf("a folder: %v", err)
	}
}

// TestSharedFileSystem checks that no lease is given if other machines could also take it.
func TestSharedFileSystem(t *testing.T) {
	t.Cleanup(func() { statfs = syscall.Statfs })
	for magic, name := range sharedFileSystems {
		statfs = func(_ string, st *syscall.Statfs_t) error {
			st.Type = int64(int32(uint32(magic))) // as 32-bit kernels extend it
			return nil
		}
		lease, err := Acquire(t.Context(), filepath.Join(t.TempDir(), "db"), nil)
		if lease != nil || !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "it is on "+name) || !strings.Contains(err.Error(), "local disk") {
			t.Errorf("%s: %v", name, err)
		}
	}
	statfs = func(string, *syscall.Statfs_t) error { return syscall.EIO }
	if _, err := Acquire(t.Context(), filepath.Join(t.TempDir(), "db"), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("a folder that cannot be looked at: %v", err)
	}
}
