package controller

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/systemd"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// lifeEnv makes TestLife, in a process of its own, a sidecar: "stuck" has its loop stuck once it is ready.
const lifeEnv = "EVOSLURM_TEST_LIFE"

// watchdogTime is how long the stand-in for systemd waits for a sign of life.
const watchdogTime = 3 * time.Second

// TestLife is no test: see TestWatchdog.
func TestLife(t *testing.T) {
	kind := os.Getenv(lifeEnv)
	if kind == "" {
		return // another test runs it
	}
	c := newIdle(t)
	c.slurm.Dir = os.Getenv("EVOSLURM_TEST_SLURM")
	c.Service = systemd.New(func(err error) { t.Error(err) })
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, c.Service.Stopping)()
	go func() {
		c.mail <- msg.Observation{Begun: time.Now(), Config: &slurmctl.Config{Version: "22.05.8", ClusterName: "c", Values: map[string]string{"SlurmUser": "root(0)"}},
			Nodes: []slurmctl.Node{{Name: "n1", State: "idle", CPUs: 1}}, Jobs: []slurmctl.Job{{ID: 7, State: slurmctl.Running}}}
		for c.view.Load().LastCycle.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		if kind == "stuck" {
			c.mail <- func() { stuckForGood() }
		}
	}()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}

// stuckForGood never returns. The stack of a stuck sidecar shows it.
func stuckForGood() { select {} }

// standIn does what systemd does with a service with Type=notify and a watchdog: it starts a process, reads its
// messages, and sends SIGABRT if there is no sign of life. It returns how the process ended.
type standIn struct {
	t      *testing.T
	socket *net.UnixConn
	path   string
}

// live runs a life of a kind, until it ends by itself or `until` returns true.
func (s *standIn) live(kind string, until func(message string) bool) (messages, output string, ended *os.ProcessState) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLife$", "-test.timeout=60s")
	slow := s.t.TempDir()
	for _, name := range []string{"scontrol", "squeue", "sinfo", "sdiag", "sacctmgr"} { // slurmctld is away
		must.OK(s.t, os.WriteFile(filepath.Join(slow, name), []byte("#!/bin/sh\nsleep 1\nexit 1\n"), 0o700))
	}
	cmd.Env = append(os.Environ(), lifeEnv+"="+kind, "EVOSLURM_TEST_SLURM="+slow, "NOTIFY_SOCKET="+s.path, "WATCHDOG_USEC=3000000")
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	must.OK(s.t, cmd.Start())
	gone := make(chan struct{})
	go func() { _ = cmd.Wait(); close(gone) }()
	ready, deadline, b := false, time.Now().Add(time.Minute), make([]byte, 4096)
	for {
		select {
		case <-gone:
			return messages, text.String(), cmd.ProcessState
		default:
		}
		must.OK(s.t, s.socket.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		n, err := s.socket.Read(b)
		switch message := string(b[:n]); {
		case err == nil:
			messages += message + "\n"
			ready = ready || strings.Contains(message, "READY=1")
			if ready && strings.Contains(message, "WATCHDOG=1") {
				deadline = time.Now().Add(watchdogTime)
			}
			if until(message) {
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
		case !errors.Is(err, os.ErrDeadlineExceeded):
			s.t.Fatal(err)
		case time.Now().After(deadline):
			_ = cmd.Process.Signal(syscall.SIGABRT)
			deadline = time.Now().Add(time.Minute)
		}
	}
}

// TestWatchdog checks that a sidecar whose loop is stuck gives no sign of life, and so is ended with a record of where it
// was stuck, and that a sidecar whose Slurm is away and slow goes on for several times the watchdog's time.
func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must.OK(t, err)
	defer l.Close()
	s := &standIn{t, l, path}
	messages, output, ended := s.live("stuck", func(string) bool { return false })
	if !strings.Contains(messages, "READY=1\nWATCHDOG=1\nSTATUS=1 jobs, 0 evolving, polled ") || ended.Success() || !strings.Contains(output, "SIGABRT") || !strings.Contains(output, "stuckForGood") {
		t.Errorf("the stuck life: %v\n%s\n%.3000s", ended, messages, output)
	}
	signs := 0
	messages, output, ended = s.live("healthy", func(message string) bool {
		sign := strings.Contains(message, "WATCHDOG=1")
		if sign {
			signs++
		}
		return sign && signs == 12 // once: a second SIGTERM would end it at once
	})
	if !strings.Contains(messages, "its last poll of Slurm failed") || !strings.Contains(messages, "STOPPING=1") || !ended.Success() {
		t.Errorf("the healthy life: %v\n%s\n%.3000s", ended, messages, output)
	}
}

// TestStatusLine checks the line that systemctl status shows.
func TestStatusLine(t *testing.T) {
	c := newIdle(t)
	if got := c.statusLine(); got != "waiting for slurmctld" {
		t.Errorf("before the first poll: %q", got)
	}
	c.view.Store(&view{View: msg.View{Seen: 412, Jobs: make([]api.Job, 37)}, Status: api.Status{LastCycle: time.Now().Add(-9 * time.Second), Drain: &api.Drain{Words: "drained by root"}, LastError: "slow"}})
	if got := c.statusLine(); got != "412 jobs, 37 evolving, polled 9 s ago; drained by root; slow" {
		t.Errorf("%q", got)
	}
	c.view.Store(&view{Status: api.Status{LastCycle: time.Now(), PollPause: 60, PollsApart: 120, MostShare: 0.01}})
	if got, want := c.statusLine(), "0 jobs, 0 evolving, polled 0 s ago; polls come 60 to 120 s apart, to take at most 1 % of slurmctld's time (slurm.share) or keep to its rate limit: a new job may wait 120 s until it is seen, a hold gives way as late"; got != want {
		t.Errorf("%q", got)
	}
}
