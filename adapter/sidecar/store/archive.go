package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"

	"github.com/evoslurm/evoslurm/adapter/internal/strict"
)

// Examined holds what Examine finds in a file.
type Examined struct {
	Bytes          int64
	Schema, Latest int64 // of the file, and of this program
	Jobs, Active   int64
	Events         int64
	Faults         []string // why it must not be used
}

// mostFaults bounds the rows that Examine names.
const mostFaults = 10

// Examine reads a database and changes nothing, also below a sidecar that works on it.
func Examine(ctx context.Context, path string) (e Examined, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return e, err
	}
	db, err := openRead(path)
	if err != nil {
		return e, err
	}
	defer db.Close()
	e.Bytes = info.Size()
	if e.Latest, err = latest(); err != nil {
		return e, err
	}
	fault := func(format string, args ...any) { e.Faults = append(e.Faults, fmt.Sprintf(format, args...)) }
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		if Refuses(err) || ctx.Err() != nil {
			return e, err // the circumstances
		}
		fault("it is no sound database: %v", err)
		return e, nil
	}
	if verdict != "ok" {
		fault("integrity check: %s", verdict)
		return e, nil
	}
	if err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version`).Scan(&e.Schema); err != nil || e.Schema == 0 {
		fault("it is no database of evoslurmd")
		return e, nil
	}
	if e.Schema > e.Latest {
		fault("it has schema %d, of a later release, and this one knows schema %d: use the release that wrote it", e.Schema, e.Latest)
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE state <> 'ended'), (SELECT count(*) FROM events) FROM jobs`).Scan(&e.Jobs, &e.Active, &e.Events); err != nil {
		fault("its tables: %v", err)
		return e, nil
	}
	return e, foreignKeys(ctx, db, fault)
}

// foreignKeys reports rows that refer to rows that do not exist.
func foreignKeys(ctx context.Context, db *sql.DB, fault func(format string, args ...any)) error {
	rows, err := db.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for n := 0; rows.Next() && n < mostFaults; n++ {
		var table, parent string
		var row, key sql.NullInt64
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		fault("table %s, row %d: it refers to a row of %s that does not exist", table, row.Int64, parent)
	}
	return rows.Err()
}

// latest returns the schema of this program.
func latest() (int64, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("no migrations: %w", err)
	}
	return goose.NumericComponent(names[len(names)-1])
}

// openRead opens a database for reading. It leaves no files behind if nobody writes to the database.
func openRead(path string) (*sql.DB, error) {
	query := url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		query.Set("immutable", "1")
	}
	return sql.Open(driver, (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}).String())
}

// Backup copies a database, on which a sidecar may work, into a new file of mode 0600. The file is there whole or not at
// all, and none is overwritten.
func Backup(ctx context.Context, path, to string) (Examined, error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return Examined{}, fmt.Errorf("%s exists, and is not overwritten: name another file", to)
	}
	f, e, err := apart(ctx, path)
	if err != nil {
		return e, err
	}
	defer discard(f)
	dir := filepath.Dir(to)
	return e, strict.AsOwner(dir, func() error {
		written, err := rewritten(f, to)
		if err != nil {
			return err
		}
		defer func() { _ = written.Cleanup() }() // the name in use is another one
		if err := errors.Join(written.Sync(), os.Link(written.Name(), to)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		return syncFolder(dir)
	})
}

// apart copies a database into a temporary file in a folder of this process's own, where no user can have sqlite follow a link.
func apart(ctx context.Context, path string) (*renameio.PendingFile, Examined, error) {
	own, err := os.MkdirTemp("", "evoslurm")
	if err != nil {
		return nil, Examined{}, err
	}
	f, e, err := copied(ctx, path, own)
	if err != nil {
		return nil, e, errors.Join(err, os.RemoveAll(own))
	}
	return f, e, nil
}

// discard removes what apart has made.
func discard(f *renameio.PendingFile) {
	_ = errors.Join(f.Cleanup(), os.Remove(filepath.Dir(f.Name())))
}

// rewritten copies a file into a temporary one beside a path.
func rewritten(from io.Reader, path string) (*renameio.PendingFile, error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, from); err != nil {
		return nil, errors.Join(err, f.Cleanup())
	}
	return f, nil
}

// copied copies a database into a temporary file in a folder, by sqlite's online backup, and examines the copy.
func copied(ctx context.Context, path, dir string) (f *renameio.PendingFile, e Examined, err error) {
	if _, err := os.Stat(path); err != nil { // sqlite would make it
		return nil, e, err
	}
	f, err = renameio.NewPendingFile(filepath.Join(dir, "evoslurm.db"), renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return nil, e, err
	}
	err = transfer(ctx, path, f.Name())
	if Malformed(err) {
		err = fmt.Errorf("%s is no sound database: %w", path, err)
	}
	if err == nil {
		e, err = Examine(ctx, f.Name())
	}
	if err == nil && len(e.Faults) > 0 {
		err = fmt.Errorf("%s is not copied: %s", path, strings.Join(e.Faults, "; "))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, e, errors.Join(err, f.Cleanup())
	}
	return f, e, nil
}

// transfer copies all pages in one step. With a write-ahead log, that keeps nobody from writing.
func transfer(ctx context.Context, from, to string) error {
	src, err := openRead(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := sql.Open(driver, (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: to}).EscapedPath()}).String())
	if err != nil {
		return err
	}
	defer dst.Close()
	return raw(ctx, src, func(source *sqlite3.SQLiteConn) error {
		return raw(ctx, dst, func(target *sqlite3.SQLiteConn) error {
			b, err := target.Backup("main", source, "main")
			if err != nil {
				return err
			}
			for done := false; !done && err == nil; {
				if done, err = b.Step(-1); !done && err == nil {
					err = ctx.Err() // another process holds a lock
					time.Sleep(10 * time.Millisecond)
				}
			}
			return errors.Join(err, b.Finish())
		})
	})
}

// raw calls f with a connection of sqlite itself.
func raw(ctx context.Context, db *sql.DB, f func(*sqlite3.SQLiteConn) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error { return f(c.(*sqlite3.SQLiteConn)) })
}

// ErrInUse means that a sidecar works on a database.
var ErrInUse = errors.New("a sidecar works on this database")

// Restore puts a copy of a backup in the place of a database, unless a sidecar works on it, and returns the name under
// which it keeps the old one; "": there was none.
func Restore(ctx context.Context, path, from string, now time.Time) (aside string, e Examined, err error) {
	dir := filepath.Dir(path)
	if err := checkPlace(dir); err != nil {
		return "", e, err
	}
	var lease *Lease
	err = strict.AsOwner(dir, func() (err error) {
		lease, err = lock(path + ".lease")
		return err
	})
	if err != nil {
		return "", e, err
	}
	if lease == nil {
		return "", e, fmt.Errorf("%s: %w: stop it first (systemctl stop evoslurmd)", path, ErrInUse)
	}
	defer func() { _ = lease.Release() }()
	f, e, err := apart(ctx, from)
	if err != nil {
		return "", e, err
	}
	defer discard(f)
	err = strict.AsOwner(dir, func() (err error) {
		aside, err = place(f, path, now)
		return err
	})
	return aside, e, err
}

// place copies a file into the place of a database, which it moves aside.
func place(from io.Reader, path string, now time.Time) (aside string, err error) {
	dir := filepath.Dir(path)
	f, err := rewritten(from, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Cleanup() }() // nothing after it was renamed
	if _, err := os.Lstat(path); err == nil {
		aside = path + ".replaced-" + now.UTC().Format("20060102T150405.000Z")
		for _, suffix := range []string{"-wal", "-shm"} { // of the old one: with the new one they would spoil it
			if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		if err := os.Link(path, aside); err != nil {
			return "", err
		}
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return aside, err
	}
	return aside, syncFolder(dir)
}

// syncFolder has the names in a folder outlive a power cut.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
