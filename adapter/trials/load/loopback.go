package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Until 23.11, slurmctld and slurmdbd send each message in two small pieces. Nagle's
// algorithm keeps the second one back until the first is acknowledged, which the other
// side puts off for 40 ms: an exchange that is 2 ms of work takes 86 ms, and a resize is
// two to four of them, with slurmctld's locks held. From 24.05 on both set TCP_NODELAY;
// before, a site can have the route between them acknowledge at once (quickack).

// inNamespace marks the process that runs in a network namespace of its own.
const inNamespace = "EVOSLOAD_NAMESPACE"

// onQuickLoopback runs this command once more, which then runs run, in a network
// namespace whose loopback acknowledges at once.
func onQuickLoopback(ctx context.Context, run func(context.Context) error) error {
	if os.Getenv(inNamespace) != "" {
		if err := quickLoopback(ctx); err != nil {
			return err
		}
		return run(ctx)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it cleans up
	err = cmd.Run()
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("a network namespace needs root (-quickack=false does without): %w", err)
	}
	return err
}

// quickLoopback sets up the loopback of the namespace.
func quickLoopback(ctx context.Context) error {
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", "192.0.2.1/32", "dev", "lo"}, // with nothing but 127.0.0.1, Slurm resolves no names
		{"route", "change", "local", "127.0.0.1", "dev", "lo", "table", "local", "quickack", "1"},
	} {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return nil
}
