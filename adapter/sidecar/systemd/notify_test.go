package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// listen makes a service manager's socket. The returned function reads the next message. It waits for one that is expected,
// and returns "" if there is none.
func listen(t *testing.T, watchdog string) func(expected bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	socket, err := l.SyscallConn()
	must.OK(t, err)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	return func(expected bool) string {
		b := make([]byte, 4096)
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			n := 0
			must.OK(t, socket.Read(func(fd uintptr) bool {
				n, _, err = syscall.Recvfrom(int(fd), b, syscall.MSG_DONTWAIT)
				return true
			}))
			if err == nil {
				return string(b[:n])
			}
			if !expected || time.Now().After(end) {
				return ""
			}
		}
	}
}

func noWarning(t *testing.T) func(error) {
	return func(err error) { t.Helper(); t.Error(err) }
}

// TestService checks what the service manager reads in the life of a sidecar.
func TestService(t *testing.T) {
	next := listen(t, "60000000")
	s := New(noWarning(t))
	if s.Every() != 15*time.Second {
		t.Errorf("a sign every %v", s.Every())
	}
	status := func() string { return "4 jobs\nMAINPID=1\x00" + strings.Repeat("x", 1000) }
	want := func(what, text string) {
		t.Helper()
		if got := next(text != ""); got != text && !(len(text) > 0 && strings.HasPrefix(got, text) && strings.Count(got, "\n") == strings.Count(text, "\n") && len(got) < 1500) {
			t.Errorf("%s: %q, want %q", what, got, text)
		}
	}
	s.Reload()()
	want("a reload before the start", "")
	s.Alive(false, status)
	want("a sign during the start", "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=4 jobs?MAINPID=1?xxx")
	s.Alive(false, status)
	want("a sign right after it", "")
	s.Alive(true, status)
	want("ready", "READY=1\nWATCHDOG=1\nSTATUS=4 jobs")
	s.last = time.Time{}
	s.Alive(true, status)
	want("a sign", "WATCHDOG=1\nSTATUS=4 jobs")
	done := s.Reload()
	want("a reload", "RELOADING=1\nMONOTONIC_USEC=")
	done()
	want("its end", "READY=1")
	done = s.During(time.Hour)
	want("a long work", "WATCHDOG=1")
	done()
	s.Stopping()
	want("the end", "STOPPING=1\nSTATUS=stopping; jobs go on")
	s.last = time.Time{}
	s.Alive(true, status)
	s.Reload()()
	want("after the end", "")
	s = New(noWarning(t))
	s.begun = s.begun.Add(-Patience)
	s.Alive(false, status)
	want("a start that waits for long", "READY=1\nWATCHDOG=1\nSTATUS=4 jobs")
	s.watchdog = 4 * time.Millisecond
	s.During(0)
	want("a work", "WATCHDOG=1")
	time.Sleep(20 * time.Millisecond)
	if next(false); next(false) != "" {
		t.Error("a work that may not take longer still gives signs of life")
	}
}

// TestWithoutSystemd: without a service manager nothing is sent, not even with a watchdog; a wrong watchdog is ignored.
func TestWithoutSystemd(t *testing.T) {
	next := listen(t, "x")
	warned := 0
	if s := New(func(error) { warned++ }); warned != 1 || s.watchdog != 0 || s.Every() != statusEvery {
		t.Errorf("a wrong watchdog: %d warnings, %+v", warned, s)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "1000")
	s := New(noWarning(t))
	s.Alive(true, nil)
	s.During(time.Hour)()
	s.Reload()()
	s.Stopping()
	if s != nil || s.Every() != 0 || next(false) != "" {
		t.Errorf("%+v", s)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	s = New(func(error) { warned++ })
	s.Alive(true, func() string { return "" })
	s.Stopping()
	if warned != 2 {
		t.Errorf("a socket that is not there: %d warnings", warned-1)
	}
}
