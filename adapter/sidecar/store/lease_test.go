package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestLease(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "sub", "db")
	first, err := Acquire(ctx, path, func() { t.Error("the first waits") })
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := Acquire(short, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second: %v, want it to wait", err)
	}
	waits, got := make(chan struct{}), make(chan error)
	go func() {
		second, err := Acquire(ctx, path, sync.OnceFunc(func() { close(waits) }))
		if err == nil {
			err = second.Release()
		}
		got <- err
	}()
	<-waits
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("the second, once the first is gone: %v", err)
	}
}

// TestLeaseOfADeletedFile checks that a waiting process gets the lease on the existing file, not on
// a deleted one.
func TestLeaseOfADeletedFile(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "db")
	first, err := Acquire(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	waits, holders := make(chan struct{}), make(chan error, 2)
	short, cancel := context.WithTimeout(ctx, 4*leasePoll)
	defer cancel()
	try := func(waiting func()) {
		_, err := Acquire(short, path, waiting)
		holders <- err
	}
	go try(sync.OnceFunc(func() { close(waits) }))
	<-waits
	if err := os.Remove(path + ".lease"); err != nil {
		t.Fatal(err)
	}
	go try(nil) // another one comes before the first is gone
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if a, b := <-holders, <-holders; (a == nil) == (b == nil) {
		t.Errorf("%v, %v; want one of them to have the lease", a, b)
	}
}

// TestLost checks that a deleted or replaced database file is noticed.
func TestLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Lost(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if s.Lost() == nil {
		t.Error("a file that is gone is not missed")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Lost() == nil {
		t.Error("another file is taken for it")
	}
}
