package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3" // the database driver
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is the sidecar's database. It is safe for concurrent use.
type Store struct {
	db   *sql.DB
	tx   *sql.Tx // of Together; nil if every call is its own transaction
	path string
	file os.FileInfo // as it was opened
}

// on returns what statements run on.
func (s *Store) on() interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
} {
	if s.tx != nil {
		return s.tx
	}
	return s.db
}

// Together makes all writes of f through the given store one transaction: after a crash, either all
// or none are there. If f fails, nothing is written. No other process can write meanwhile, so f
// must be quick.
func (s *Store) Together(ctx context.Context, f func(*Store) error) error {
	return s.inTx(ctx, func(tx *sql.Tx) error { return f(&Store{db: s.db, tx: tx}) })
}

// Open opens the database file, creates it if missing (mode 0600), updates its schema, and checks
// it. Its error is ErrUnfit if a later release wrote the file, and ErrMalformed if the file can
// never be read.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("database folder: %w", err)
	}
	// sqlite would make the file with the umask's rights
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	f.Close()
	db, err := openWrite(path)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	s := &Store{db: db, path: path}
	if err := s.migrate(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("database %s: %w", path, MarkMalformed(ctx, err))
	}
	if err := s.Check(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("database %s: %w", path, MarkMalformed(ctx, err))
	}
	if s.file, err = os.Stat(path); err != nil {
		db.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	return s, nil
}

// openWrite opens a database file, or a new one.
func openWrite(path string) (*sql.DB, error) {
	query := url.Values{
		"_journal_mode": {"WAL"},
		"_foreign_keys": {"on"},
		"_busy_timeout": {"5000"},
		"_synchronous":  {"FULL"}, // an intent must outlive a power cut
		"_txlock":       {"immediate"},
	}
	return sql.Open(driver, (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query.Encode()}).String())
}

// Lost returns an error if the database's file was deleted or replaced since it was opened: further
// writes are lost or go to two places.
func (s *Store) Lost() error {
	now, err := os.Stat(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // a file system that is away for a moment is not this
	}
	if err != nil || !os.SameFile(now, s.file) {
		return fmt.Errorf("database %s: the file was deleted or replaced", s.path)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, s.db, files)
	if err != nil {
		return err
	}
	current, latest, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > latest {
		return fmt.Errorf("%w: it has schema %d, of a later release, and this evoslurmd knows schema %d: start the release that wrote it, "+
			"restore a backup of this one (evosctl db restore), or move the file away (the sidecar then adopts all jobs from Slurm and loses its history)", ErrUnfit, current, latest)
	}
	_, err = provider.Up(ctx)
	return err
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Check reads the whole database and says what sqlite finds wrong with it.
func (s *Store) Check(ctx context.Context) error {
	var verdict string
	if err := s.db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&verdict); err != nil {
		return fmt.Errorf("integrity check: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("integrity check: %s", verdict)
	}
	return nil
}

// inTx runs f in one transaction, in Together's if there is one.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	if s.tx != nil {
		return f(s.tx)
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing after a commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// unix is t for a column; the zero time is 0.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromUnix(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}
