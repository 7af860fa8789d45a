package rig

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// Start starts the sidecar as an account, with further arguments. stop ends it by SIGTERM, and returns how it ended.
func (r *Rig) Start(a Account, args ...string) (daemon *exec.Cmd, stop func() error, err error) {
	log, err := os.Create(r.LogFile())
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	daemon = exec.Command(r.Bin+"/evoslurmd", append([]string{"--config", r.Dir + "/evoslurm.yaml"}, args...)...)
	daemon.Env, daemon.Dir, daemon.Stderr = append(os.Environ(), r.Env()...), r.Dir, log
	a.Become(daemon)
	if err := daemon.Start(); err != nil {
		return nil, nil, err
	}
	return daemon, sync.OnceValue(func() error {
		return errors.Join(daemon.Process.Signal(syscall.SIGTERM), daemon.Wait())
	}), nil
}

// LogFile returns the path of the log that Start has the sidecar write.
func (r *Rig) LogFile() string { return r.Dir + "/evoslurmd.log" }

// StartIn does what Start does for a test, whose end stops the sidecar. If the test fails, it logs what the sidecar logged last.
func (r *Rig) StartIn(t *testing.T, a Account, args ...string) (stop func()) {
	t.Helper()
	_, end, err := r.Start(a, args...)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("evoslurmd after SIGTERM: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			text, _ := os.ReadFile(r.LogFile())
			t.Logf("log of evoslurmd:\n%s", text[max(len(text)-1<<16, 0):])
		}
	})
	return stop
}

// In does what New does on a cluster of a test, whose end removes the rig's folder.
func In(t *testing.T, options slurmtest.Options, bin, more string) *Rig {
	t.Helper()
	r, err := New(slurmtest.Start(t, options), bin, more)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.Dir) })
	return r
}

// Use builds the commands, boots a cluster, and calls use with Evoslurm installed there.
func Use(ctx context.Context, options slurmtest.Options, more string, use func(*Rig) error) error {
	_, err := built(func(bin string) (_ int, err error) {
		boot, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		cluster, err := slurmtest.Boot(boot, options)
		if err != nil {
			return 0, err
		}
		defer func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
			defer cancel()
			err = errors.Join(err, cluster.Stop(end))
		}()
		r, err := New(cluster, bin, more)
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(r.Dir)
		return 0, use(r)
	})
	return err
}

// Load returns the machine's load over the last minute.
func Load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
