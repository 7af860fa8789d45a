package slurmtest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

//go:embed clock/clock.c
var clockSource []byte

//go:embed clock/symbols.map
var clockSymbols []byte

// Variables of the library for the clock.
const (
	clockVariable   = "SLURMTEST_CLOCK"
	preloadVariable = "LD_PRELOAD"
)

func (c *Cluster) clockFile() string    { return c.site.dir + "/clock" }
func (c *Cluster) clockLibrary() string { return c.site.dir + "/clock.so" }

// makeClock builds the library for the clock, with the C compiler that cgo also needs.
func (c *Cluster) makeClock(ctx context.Context) error {
	source, symbols := c.site.dir+"/clock.c", c.site.dir+"/clock.map"
	err := errors.Join(os.WriteFile(source, clockSource, 0o644), os.WriteFile(symbols, clockSymbols, 0o644), c.setClock(0))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "gcc", "-O2", "-shared", "-fPIC", "-Wl,--hash-style=both", "-Wl,--version-script="+symbols,
		"-o", c.clockLibrary(), source, "-ldl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slurmtest: the clock's library: %w: %s", err, out)
	}
	return nil
}

// clockEnv returns the variables that make a process use the cluster's clock.
func (c *Cluster) clockEnv() []string {
	if !c.ownClock {
		return nil
	}
	return []string{preloadVariable + "=" + c.clockLibrary(), clockVariable + "=" + c.clockFile()}
}

// setClock writes how many seconds the cluster's clock is ahead, in one write: all its processes
// map the file.
func (c *Cluster) setClock(seconds int64) error {
	f, err := os.OpenFile(c.clockFile(), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(seconds)), 0)
	return errors.Join(err, f.Close())
}

// ahead returns how far the cluster's clock is ahead of the machine's.
func (c *Cluster) ahead() (time.Duration, error) {
	text, err := os.ReadFile(c.clockFile())
	if err == nil && len(text) != 8 {
		err = fmt.Errorf("slurmtest: %s has %d bytes", c.clockFile(), len(text))
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(binary.NativeEndian.Uint64(text)) * time.Second, nil
}

// StepClock moves the clock of all daemons, jobs, and clients of a cluster with Options.OwnClock by
// whole seconds, forward or back. The machine's clock stays, also for programs without Env.
// Monotonic clocks, and so timeouts and sleeps, do not change, as when a machine's clock is set.
func (c *Cluster) StepClock(by time.Duration) error {
	if !c.ownClock {
		return errors.New("slurmtest: StepClock needs Options.OwnClock")
	}
	ahead, err := c.ahead()
	if err != nil {
		return err
	}
	return c.setClock(int64((ahead + by) / time.Second))
}

// Now returns the time by the cluster's clock.
func (c *Cluster) Now() time.Time {
	if ahead, err := c.ahead(); err == nil {
		return time.Now().Add(ahead)
	}
	return time.Now()
}
