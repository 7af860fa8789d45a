package fence

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func run(before time.Duration, argv ...string) (string, error) {
	argv = Command(before, argv...)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	return string(out), err
}

func TestFence(t *testing.T) {
	if out, err := run(Now()+time.Minute, "/bin/echo", "a", "b c"); out != "a b c\n" || err != nil {
		t.Errorf("in time: %q, %v", out, err)
	}
	if out, err := run(Now()-1, "/bin/echo", "a"); !strings.Contains(out, "/bin/echo was not run: the lease of this sidecar has run out") || err == nil {
		t.Errorf("too late: %q, %v", out, err)
	}
	if out, err := run(Now()+time.Minute, "/bin/does-not-exist"); !strings.Contains(out, "no such file") || err == nil {
		t.Errorf("no command: %q, %v", out, err)
	}
}

// TestStopped: a command that was stopped beyond its deadline ends before it goes on.
func TestStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	argv := Command(Now()+500*time.Millisecond, "/bin/sh", "-c", `kill -STOP $$; echo acted >"$0"`, file)
	cmd := exec.Command(argv[0], argv[1:]...)
	must.OK(t, cmd.Start())
	time.Sleep(time.Second)
	must.OK(t, cmd.Process.Signal(syscall.SIGCONT))
	err := cmd.Wait()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGALRM {
		t.Errorf("the command ended with %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it acted after its deadline")
	}
}

func BenchmarkFence(b *testing.B) {
	for b.Loop() {
		if _, err := run(Now()+time.Minute, "/bin/true"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlain(b *testing.B) {
	for b.Loop() {
		must.OK(b, exec.Command("/bin/true").Run())
	}
}
