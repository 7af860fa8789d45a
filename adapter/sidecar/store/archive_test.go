package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
)

// backedUp returns a database with two jobs and its lease, and a backup with the first job alone.
func backedUp(t *testing.T) (s *Store, lease *Lease, kept string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "evoslurm.db")
	kept = filepath.Join(filepath.Dir(path), "kept.db")
	lease, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if err := s.AddJob(t.Context(), sample(1)); err != nil {
		t.Fatal(err)
	}
	e, err := Backup(t.Context(), path, kept)
	if err != nil || e.Jobs != 1 || e.Active != 1 || e.Schema != e.Latest || e.Schema < 33 {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := s.AddJob(t.Context(), sample(2)); err != nil {
		t.Fatal(err)
	}
	return s, lease, kept
}

// TestBackup checks a backup of a database that is written to.
func TestBackup(t *testing.T) {
	s, _, kept := backedUp(t)
	if info, err := os.Stat(kept); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup: %v, %v", info.Mode(), err)
	}
	if _, err := Backup(t.Context(), s.path, kept); err == nil || !strings.Contains(err.Error(), "is not overwritten") {
		t.Errorf("over it: %v", err)
	}
	if _, _, err := Restore(t.Context(), s.path, kept, time.Now()); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "systemctl stop evoslurmd") {
		t.Errorf("restored below a sidecar: %v", err)
	}
	if jobs, err := s.ActiveJobs(t.Context()); err != nil || len(jobs) != 2 || s.Lost() != nil {
		t.Errorf("%d jobs, %v, %v", len(jobs), err, s.Lost())
	}
}

// TestRestore checks that a backup is put back, and that the old database is kept.
func TestRestore(t *testing.T) {
	s, lease, kept := backedUp(t)
	if err := errors.Join(s.Close(), lease.Release()); err != nil {
		t.Fatal(err)
	}
	aside, e, err := Restore(t.Context(), s.path, kept, time.Unix(0, 0))
	if err != nil || e.Jobs != 1 || !strings.HasSuffix(aside, "evoslurm.db.replaced-19700101T000000.000Z") {
		t.Fatalf("%q %+v %v", aside, e, err)
	}
	for file, want := range map[string]int64{s.path: 1, aside: 2, kept: 1} {
		if e, err := Examine(t.Context(), file); err != nil || e.Jobs != want || len(e.Faults) > 0 {
			t.Errorf("%s: %+v, %v", file, e, err)
		}
	}
	if aside, _, err := Restore(t.Context(), filepath.Join(filepath.Dir(kept), "new.db"), kept, time.Now()); err != nil || aside != "" {
		t.Errorf("where there was none: %q, %v", aside, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(kept), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if jobs, err := open(t, s.path).ActiveJobs(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
}

// TestRestoreAmongLinks checks that root, who restores for the sidecar's account, follows no link of that account.
func TestRestoreAmongLinks(t *testing.T) {
	const account = 65534
	s, lease, kept := backedUp(t)
	if err := errors.Join(s.Close(), lease.Release()); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "restore") // unlike t.TempDir, others may pass its parent
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, victim := filepath.Join(dir, "evoslurm.db"), filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(victim)), 0o755), os.WriteFile(victim, nil, 0o600), os.Chown(dir, account, account), os.Symlink(victim, path+".lease")); err != nil {
		t.Fatal(err)
	}
	owner := func(file string) uint32 { return ownerOf(t, file) }
	if _, _, err := Restore(t.Context(), path, kept, time.Now()); !errors.Is(err, fs.ErrPermission) || owner(victim) != 0 {
		t.Errorf("%v; the file that the link names belongs to %d", err, owner(victim))
	}
	if err := os.Remove(path + ".lease"); err != nil {
		t.Fatal(err)
	}
	if _, e, err := Restore(t.Context(), path, kept, time.Now()); err != nil || e.Jobs != 1 || owner(path) != account || owner(path+".lease") != account || os.Geteuid() != 0 {
		t.Errorf("%+v, %v, as %d", e, err, os.Geteuid())
	}
}

func ownerOf(t *testing.T, file string) uint32 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestBackupAmongLinks checks that root, who backs up into the folder of another account, writes there as that account, and follows none of its
// links.
func TestBackupAmongLinks(t *testing.T) {
	const account = 65534
	s, _, _ := backedUp(t)
	dir, err := os.MkdirTemp("", "backup")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chown(dir, account, account), os.Symlink(t.TempDir(), dir+"/link"), os.Lchown(dir+"/link", account, account)); err != nil {
		t.Fatal(err)
	}
	if e, err := Backup(t.Context(), s.path, dir+"/kept"); err != nil || e.Jobs != 2 || ownerOf(t, dir+"/kept") != account || os.Geteuid() != 0 {
		t.Errorf("%+v, %v, as %d", e, err, os.Geteuid())
	}
	if e, err := Examine(t.Context(), dir+"/kept"); err != nil || e.Jobs != 2 || len(e.Faults) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := Backup(t.Context(), s.path, dir+"/link/kept"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("behind a link: %v", err)
	}
	if left, err := filepath.Glob(dir + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestFaulty checks that what is no sound database of this release or an earlier one is named, and neither backed up nor
// restored. The old one stays.
func TestFaulty(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	good := filepath.Join(dir, "good.db")
	open(t, good).Close()
	with := func(name, statement string) string {
		path := filepath.Join(dir, name)
		s := open(t, path)
		defer s.Close()
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		text: "no sound database", with("other.db", `DROP TABLE goose_db_version`): "no database of evoslurmd",
		with("later.db", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, 1)`):                                              "schema 9001, of a later release",
		with("loose.db", `PRAGMA foreign_keys = off; INSERT INTO plans (job, step, starts, ends, nodes, node_list) VALUES (7, 1, 0, 0, 1, '')`): "refers to a row of jobs that does not exist",
	} {
		e, err := Examine(ctx, path)
		if err != nil || len(e.Faults) == 0 || !strings.Contains(e.Faults[0], want) {
			t.Errorf("%s: %+v, %v; want %s", path, e, err, want)
		}
		_, err1 := Backup(ctx, path, path+".kept")
		_, _, err2 := Restore(ctx, good, path, time.Now())
		_, err3 := os.Stat(path + ".kept")
		if err1 == nil || err2 == nil || !strings.Contains(err2.Error(), want) || !errors.Is(err3, fs.ErrNotExist) {
			t.Errorf("%s: backed up: %v, %v; restored: %v", path, err1, err3, err2)
		}
	}
	if _, err := Examine(ctx, filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if e, err := Examine(ctx, good); err != nil || len(e.Faults) > 0 {
		t.Errorf("the old one: %+v, %v", e, err)
	}
}

// TestMigrations brings a database of every schema there ever was up to date. The rows that it had stay.
func TestMigrations(t *testing.T) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/schema-1.sql")
	if err != nil {
		t.Fatal(err)
	}
	latest, err := latest()
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			ctx, path := t.Context(), filepath.Join(t.TempDir(), "db")
			version, err := goose.NumericComponent(name)
			if err != nil {
				t.Fatal(err)
			}
			old, err := openAt(ctx, path, files, string(rows), version)
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			s := open(t, path)
			active, err1 := s.ActiveJobs(ctx)
			ended, err2 := s.History(ctx, HistoryFilter{Limit: 9})
			plan, err3 := s.Plan(ctx, 1)
			events, err4 := s.Events(ctx, 0, 0, 9)
			intents, err5 := s.OpenIntents(ctx)
			e, err6 := Examine(ctx, path)
			if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil || e.Schema != latest || len(e.Faults) > 0 {
				t.Fatalf("%+v, %v", e, err)
			}
			if got := fmt.Sprint(len(active), len(ended), len(plan), len(events), len(intents), active[0].Profile, " ", ended[0].EndState); got != "1 1 2 2 1 2@10m,4@5m COMPLETED" {
				t.Errorf("%s", got)
			}
		})
	}
}

// openAt makes a database of an old schema, with rows that were written under schema 1.
func openAt(ctx context.Context, path string, files fs.FS, rows string, version int64) (*Store, error) {
	db, err := openWrite(path)
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err == nil {
		_, err = provider.UpTo(ctx, 1)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, rows)
	}
	if err == nil {
		_, err = provider.UpTo(ctx, version)
	}
	return &Store{db: db, path: path}, err
}
