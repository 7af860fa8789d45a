package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (e interrupted) Error() string { return e.signal.String() }

// status returns the exit status of a program that the signal ended.
func (e interrupted) status() int { return 128 + int(e.signal) }

// untilSignal returns a context that SIGINT, SIGTERM, or SIGHUP ends; the cause names the signal.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			cancel(interrupted{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// untilSignalOr returns a context that a signal ends, or the limit, if it is not 0.
func untilSignalOr(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, stop := untilSignal(ctx)
	if limit <= 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, func() { cancel(); stop() }
}
