package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// leasePoll is how often a sidecar in waiting tries to get the lease.
const leasePoll = 250 * time.Millisecond

// Lease is the right to work on a database, which only one process of the machine has at a time.
// The kernel releases it when its holder dies for any reason.
type Lease struct{ file *os.File }

// Acquire takes the lease on a database and waits while another process has it; waiting is then
// called after each try. It is a lock (flock) on its own file beside the database, so it holds even if the
// database is deleted. Take the lease before opening the database. If no lease would exclude other
// machines, the error is ErrUnfit.
func Acquire(ctx context.Context, database string, waiting func()) (*Lease, error) {
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		return nil, fmt.Errorf("database folder: %w", err)
	}
	if err := checkPlace(filepath.Dir(database)); err != nil {
		return nil, err
	}
	path := database + ".lease"
	for {
		f, err := lock(path)
		if f != nil || err != nil {
			return f, err
		}
		if waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lease on %s: %w", path, ctx.Err())
		case <-time.After(leasePoll):
		}
	}
}

// lock tries to take the lease; nil if another process has it.
func lock(path string) (*Lease, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		// a lock on a deleted file excludes no process
		var mine, there os.FileInfo
		if mine, err = f.Stat(); err == nil {
			there, err = os.Stat(path)
		}
		if err == nil && os.SameFile(mine, there) {
			return &Lease{f}, nil
		}
	}
	f.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return nil, fmt.Errorf("lease on %s: %w", path, err)
}

// Release returns the lease to the next that waits.
func (l *Lease) Release() error { return l.file.Close() }
