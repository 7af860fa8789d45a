package slurmctl_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestSlurmdbdAnswers checks that Slurmdbd notices a slurmdbd or a database that is away or hangs.
func TestSlurmdbdAnswers(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1, Accounting: true})
	signal := func(daemon string, s syscall.Signal) func() error {
		return func() error { return f.cluster.Signal(f.ctx, daemon, s) }
	}
	socket := f.cluster.MungeSocket()
	for _, c := range []struct {
		name       string
		lose, mend func() error
	}{
		{"slurmdbd hangs", signal("slurmdbd", syscall.SIGSTOP), signal("slurmdbd", syscall.SIGCONT)},
		{"the database hangs", signal("mariadbd", syscall.SIGSTOP), signal("mariadbd", syscall.SIGCONT)},
		{"munged is away", func() error { return os.Rename(socket, socket+".away") }, func() error { return os.Rename(socket+".away", socket) }},
		{"slurmdbd is away", func() error { return f.cluster.StopSlurmdbd(f.ctx) }, func() error { return f.cluster.StartSlurmdbd(f.ctx) }},
		{"the database is away", signal("mariadbd", syscall.SIGKILL), nil},
	} {
		f.Timeout = 0
		if err := f.Slurmdbd(f.ctx); err != nil {
			t.Fatalf("before %s: %v", c.name, err)
		}
		f.must(c.lose())
		f.Timeout = 3 * time.Second
		if err := f.Slurmdbd(f.ctx); !errors.Is(err, slurmctl.ErrNoSlurmdbd) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.mend != nil {
			f.must(c.mend())
		}
	}
}
