package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CopyTo writes a copy of the whole database, as of one moment, to a file that is made new. The database can be
// written meanwhile.
func (s *Store) CopyTo(ctx context.Context, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // sqlite writes into an empty file
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// Install puts a copy in the place of a database that no process has open, if this release can read it.
func Install(ctx context.Context, copied, database string) error {
	st, err := Open(ctx, copied)
	if err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	for _, rest := range []string{"-wal", "-shm"} {
		if err := os.Remove(database + rest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(copied, database)
}
