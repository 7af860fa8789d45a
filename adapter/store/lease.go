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

// Lease is the right to work on a database, which one process of the machine has
// at a time. The kernel gives it back when its holder dies, however it dies.
type Lease struct{ file *os.File }

// Acquire takes the lease on a database, and waits for it as long as another
// process has it; waiting is then called once. It is a lock (flock) on a file of
// its own beside the database, so that it holds even where that is deleted. The
// lease must be taken before the database is opened.
func Acquire(ctx context.Context, database string, waiting func()) (*Lease, error) {
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		return nil, fmt.Errorf("database folder: %w", err)
	}
	f, err := os.OpenFile(database+".lease", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return &Lease{f}, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			f.Close()
			return nil, fmt.Errorf("lease on %s: %w", f.Name(), err)
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lease on %s: %w", f.Name(), ctx.Err())
		case <-time.After(leasePoll):
		}
	}
}

// Release gives the lease to whoever waits.
func (l *Lease) Release() error { return l.file.Close() }
