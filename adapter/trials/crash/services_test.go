package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// TestServices: the daemons that Slurm needs beside its own are away for a while.
func TestServices(t *testing.T) {
	t.Parallel()
	s := newSite(t, merging, "")
	s.occupy()
	job := func() error {
		name := s.name("job")
		if _, err := s.submit(name, enduring, "--profile=1@4s,3@4s,2@4s", "--time=10"); err != nil {
			return err
		}
		return s.endured(name)
	}
	for _, c := range []struct {
		name string
		set  func()
	}{
		{"munged is away at a merge", func() {
			s.at(crash.Before, hasArg("NumNodes=0"), func() {
				socket := s.Cluster.MungeSocket()
				if err := os.Rename(socket, socket+".away"); err != nil {
					s.t.Error(err)
				}
				go func() {
					time.Sleep(5 * time.Second)
					if err := os.Rename(socket+".away", socket); err != nil {
						s.t.Error(err)
					}
				}()
			})
		}},
		{"slurmdbd is away for a while in the middle of a grow", func() {
			s.at(crash.Before, isCommand("salloc"), func() { s.stopSlurmdbd(10 * time.Second) })
		}},
		{"slurmdbd hangs for a while in the middle of a grow", func() {
			s.at(crash.Before, isCommand("salloc"), func() { s.hang(8 * time.Second) })
		}},
		{"Slurm's commands are replaced in the middle of a grow", func() {
			s.at(crash.Before, isCommand("salloc"), func() { s.replaceCommands(5 * time.Second) })
		}},
		{"slurmdbd is away for a while before a shrink", func() {
			s.at(crash.After, hasArg("NumNodes=0"), func() { s.stopSlurmdbd(10 * time.Second) })
		}},
	} {
		s.tried(t, c.name, c.set, job)
	}
	// The window between the check of slurmdbd and the merge: Slurm 22.05 then blocks and refuses
	// every change of the job until it ends, because its index in slurmdbd stays unknown. This must
	// be reported, and nothing may remain.
	s.tried(t, "slurmdbd goes at the very merge", func() {
		s.at(crash.Before, hasArg("NumNodes=0"), func() { s.stopSlurmdbd(5 * time.Second) })
	}, func() error {
		name := s.name("stuck")
		id, err := s.submit(name, evolving, "--profile=1@3s,3@3s,2@3s", "--time=10")
		if err != nil {
			return err
		}
		err = within(patience, func() error {
			j, err := s.job(id)
			if err == nil && slices.Equal(s.trace(name), steps(1, 3, 2)) {
				return nil // this Slurm does better
			}
			if err == nil && (!strings.HasPrefix(j.Reason, "shrink failed") || !strings.Contains(j.Reason, ": scontrol update JobId=")) {
				err = fmt.Errorf("step %d, %q", j.Step, j.Reason)
			}
			return err
		})
		_, cancelled := s.as(0, "scancel", strconv.Itoa(int(id)))
		return errors.Join(err, cancelled)
	})
}

// replaceCommands takes Slurm's commands away for a while, as an upgrade does.
func (s *site) replaceCommands(away time.Duration) {
	for _, name := range shimmed {
		if err := os.Remove(s.Dir + "/slurm/" + name); err != nil {
			s.t.Error(err)
		}
	}
	go func() {
		time.Sleep(away)
		for _, name := range shimmed {
			if err := os.Symlink(bin+"/slurmshim", s.Dir+"/slurm/"+name); err != nil {
				s.t.Error(err)
			}
		}
	}()
}

// hang has slurmdbd hang for a while.
func (s *site) hang(away time.Duration) {
	if err := s.Cluster.Signal(context.Background(), "slurmdbd", syscall.SIGSTOP); err != nil {
		s.t.Error(err)
	}
	go func() {
		time.Sleep(away)
		if err := s.Cluster.Signal(context.Background(), "slurmdbd", syscall.SIGCONT); err != nil {
			s.t.Error(err)
		}
	}()
}

// stopSlurmdbd stops slurmdbd and starts it again after a while.
func (s *site) stopSlurmdbd(away time.Duration) {
	if err := s.Cluster.StopSlurmdbd(context.Background()); err != nil {
		s.t.Error(err)
	}
	go func() {
		time.Sleep(away)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Cluster.StartSlurmdbd(ctx); err != nil {
			s.t.Error(err)
		}
	}()
}
