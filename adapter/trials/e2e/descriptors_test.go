package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestNoDescriptors: for a while the sidecar may open no file: it can accept no connection and
// start no command, in the middle of a job that grows. It lives on, and the job has its steps.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	id := s.submit(s.script("evolve.sh", evolve))
	logged := func(text string) func() bool {
		return func() bool {
			log, err := os.ReadFile(s.log.Name())
			return err == nil && strings.Contains(string(log), text)
		}
	}
	s.eventually("the job runs", logged("msg=started"))
	pid := s.daemon.Process.Pid
	var before unix.Rlimit
	s.must(unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	s.must(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}, nil))
	s.eventually("it cannot poll Slurm", logged("too many open files"))
	s.must(unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	if got := messages(s.output(id)); !slices.Equal(got, evolved) {
		t.Errorf("the job printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(evolved, "\n"))
	}
	if err := s.daemon.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the sidecar has ended: %v", err)
	}
}
