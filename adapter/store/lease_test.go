package store

import (
	"context"
	"errors"
	"path/filepath"
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
		second, err := Acquire(ctx, path, func() { close(waits) })
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
