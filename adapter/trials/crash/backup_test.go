package crash_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// away lists the ways in which the first slurmctld goes.
var away = []struct {
	name string
	do   func(s *site) error
}{
	{"killed", func(s *site) error { return s.Cluster.KillController(context.Background()) }},
	{"shut down", func(s *site) error { return s.Cluster.StopController(context.Background()) }},
	{"taken over", func(s *site) error { _, err := s.root("scontrol", "takeover"); return err }},
}

// slowLink is the script of a chain's jobs, whose first step lasts until slurmctld has saved the next ones.
var slowLink = strings.Replace(linked, "sleep ${2:-1}", fmt.Sprintf("[ $EVO_STEP = 1 ] && sleep %.0f || sleep 4", stateSaved.Seconds()), 1)

// TestBackup: the first of two slurmctlds goes in the middle of a growth, the second acts for it, and gives way to it
// again before the job shrinks. The job gets all of its nodes, and Slurm is clean afterwards.
func TestBackup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a second slurmctld needs root")
	}
	for i, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion, drivemode.Chain} {
		if !*full && drive != drivemode.Companion {
			continue // make crash
		}
		t.Run(string(drive), func(t *testing.T) {
			t.Parallel()
			options := slurmtest.Options{Backup: true}
			if drive == drivemode.Merge {
				options = merging
				options.Backup = true
			}
			s := newSite(t, options, "")
			s.occupy()
			for n := range away {
				if !*full && n > 0 {
					break
				}
				way := away[(n+i)%len(away)]
				s.tried(t, way.name, func() {}, func() error { return s.failOver(drive, way.do) })
			}
		})
	}
}

// failOver runs a job during whose growth the first slurmctld goes.
func (s *site) failOver(drive drivemode.Mode, goes func(*site) error) error {
	time.Sleep(stateSaved) // of the job before
	name, script, grows := s.name("failover"), enduring, s.growing
	if drive == drivemode.Chain {
		script, grows = slowLink, hasArg("StartTime=")
	} else {
		script = strings.Replace(script, "sleep 2", fmt.Sprintf("sleep $([ ${EVO_STEP:-1} = 1 ] && echo %.0f || echo 4)", stateSaved.Seconds()), 1)
	}
	if _, err := s.submit(name, script, "--drive="+string(drive), "--profile=1@20s,3@15s,2@4s", "--time=10", "--open-mode=append"); err != nil {
		return err
	}
	if err := within(patience, func() error { return s.wroteSome(name, 1) }); err != nil {
		return err
	}
	s.at(crash.Before, grows, func() {
		if err := goes(s); err != nil {
			s.t.Error(err)
		}
	})
	if err := within(patience, func() error { return s.wroteSome(name, 2) }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Cluster.StartController(ctx); err != nil {
		return err
	}
	return s.wrote(name, steps(1, 3, 2))
}

// wroteSome reports whether a job has begun a step.
func (s *site) wroteSome(name string, step int) error {
	if got := s.trace(name); !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, fmt.Sprintf("step %d ", step)) }) {
		return fmt.Errorf("%s wrote %q, want step %d", name, got, step)
	}
	return nil
}
