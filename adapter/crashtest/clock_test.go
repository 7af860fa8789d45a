package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/crashtest"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestClock: the clock of the machine, that of slurmctld, slurmd, munged, jobs and
// sidecar, is set forward and back by an hour. Jobs whose limit leaves room for it do
// all that they should, and nobody is taken for late.
func TestClock(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprintf("%+.0f h", by.Hours()), func(t *testing.T) {
			t.Parallel()
			clockStepped(t, by)
		})
	}
}

func clockStepped(t *testing.T, by time.Duration) {
	options := merging
	options.OwnClock = true
	s := newSite(t, options, "")
	s.occupy()
	// stock Slurm schedules nothing until the time is reached again that it saw last
	step := func() error {
		err := s.stepClock(by)
		if err == nil && by < 0 {
			err = s.cluster.RestartController(context.Background())
		}
		return err
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"jobs run, one waits for the other's nodes", func() error {
			first, second := s.name("first"), s.name("second")
			// 7 nodes are free: the second gets what the first has given back
			_, err := s.submit(first, lasting(evolving, 3), "--profile=4@4s,1@4s", "--time=300")
			if err == nil {
				_, err = s.submit(second, lasting(evolving, 3), "--profile=2@4s,6@4s", "--time=300")
			}
			if err == nil {
				err = s.begun(first, second)
			}
			if err == nil {
				err = s.stepClock(by) // what runs does not depend on Slurm's queue
			}
			return errors.Join(err, s.wrote(first, steps(4, 1)), s.wrote(second, steps(2, 6)))
		}},
		{"a job is queued", func() error {
			first, second := s.name("first"), s.name("second")
			_, err := s.submit(first, lasting(evolving, 3), "--profile=4@4s,5@4s", "--time=300")
			if err == nil {
				err = s.begun(first)
			}
			if err == nil {
				_, err = s.submit(second, lasting(evolving, 3), "--profile=4@4s,6@4s", "--time=300")
			}
			if err == nil {
				err = step()
			}
			return errors.Join(err, s.wrote(first, steps(4, 5)), s.wrote(second, steps(4, 6)))
		}},
		{"in the middle of a grow", func() error {
			s.at(crashtest.Before, hasArg("NumNodes=0"), func() {
				if err := s.cluster.StepClock(by); err != nil {
					s.t.Error(err)
				}
			})
			name := s.name("grow")
			if _, err := s.submit(name, lasting(evolving, 3), "--profile=1@4s,3@4s,2@4s", "--time=300"); err != nil {
				return err
			}
			return s.wrote(name, steps(1, 3, 2))
		}},
		{"companions", func() error {
			name := s.name("companion")
			_, err := s.submit(name, lasting(evolving, 3), "--drive=companion", "--profile=1@4s,3@4s,2@4s,4@4s", "--time=300")
			if err == nil {
				err = within(patience, func() error {
					if len(s.trace(name)) < 2 {
						return errors.New("step 2 has not begun")
					}
					return nil
				})
			}
			if err == nil {
				err = s.stepClock(by)
			}
			return errors.Join(err, s.wrote(name, steps(1, 3, 2, 4)))
		}},
		{"a chain", func() error {
			name := s.name("chain")
			_, err := s.submit(name, lasting(linked, 3), "--drive=chain", "--profile=1@4s,3@4s,2@4s", "--open-mode=append", "--time=300")
			if err == nil {
				err = s.begun(name)
			}
			if err == nil {
				err = step()
			}
			if by < 0 {
				return errors.Join(err, s.wrote(name, steps(1, 3, 2)))
			}
			// its jobs have limits of minutes, which are over
			return errors.Join(err, within(patience, s.clean), s.wrote(name, steps(1)[:1]))
		}},
		{"the sidecar is down", func() error {
			name := s.name("down")
			_, err := s.submit(name, lasting(evolving, 3), "--profile=1@4s,3@4s,2@4s", "--time=300")
			if err == nil {
				err = s.begun(name)
			}
			s.stop()
			if err == nil {
				err = s.stepClock(by)
			}
			s.start()
			return errors.Join(err, s.wrote(name, steps(1, 3, 2)))
		}},
	} {
		s.tried(t, c.name, func() {}, c.run, "overrun", "enforced", "delayed", "requeued")
		if by < 0 { // whoever comes next is not to meet slurmctld in the past
			s.must(s.cluster.RestartController(context.Background()))
		}
	}
}

// TestStartedAlone: Slurm starts a planned job by itself while the sidecar is down, and
// the sidecar comes back long after the job's first step should have ended. Slurm,
// which ends jobs together with the reservations that they run in, lets it live.
func TestStartedAlone(t *testing.T) {
	t.Parallel()
	options := merging
	options.OwnClock = true
	s := newSite(t, options, "")
	s.occupy()
	s.tried(t, "an hour", func() {}, func() error {
		first, second := s.name("first"), s.name("second")
		_, err := s.submit(first, "#!/bin/bash\nsleep 12\n", "--profile=7@12s", "--time=300")
		if err != nil {
			return err
		}
		up := s.dir + "/out/" + second + ".up"
		id, err := s.submit(second, strings.Replace(evolving, "while", "until [ -e "+up+" ]; do sleep 0.2; done\nwhile", 1),
			"--profile=4@4s,6@4s", "--time=300")
		if err != nil {
			return err
		}
		seen := func(what string, is func(slurmctl.Job) bool) error {
			return within(patience, func() error {
				jobs, err := s.cluster.Client().JobsByID(context.Background(), id)
				if err == nil && (len(jobs) != 1 || !is(jobs[0])) {
					err = fmt.Errorf("%s: %+v", what, jobs)
				}
				return err
			})
		}
		if err := seen("has no hold to start in", func(j slurmctl.Job) bool { return j.Reservation != "" }); err != nil {
			return err
		}
		s.stop()
		err = seen("was not started", func(j slurmctl.Job) bool { return j.State == slurmctl.Running })
		if err == nil {
			err = s.stepClock(time.Hour)
		}
		time.Sleep(2 * limitsLooked)
		s.start()
		return errors.Join(err, os.WriteFile(up, nil, 0o644), s.wrote(second, steps(4, 6)))
	}, "requeued")
}

// limitsLooked is how often slurmctld looks for jobs whose time is over.
const limitsLooked = 30 * time.Second

// stepClock steps the clock in a moment in which no task runs and slurmctld knows it:
// slurmstepd's word that its tasks have ended is refused if the clock is stepped while
// it is on its way, and comes again a minute later.
func (s *site) stepClock(by time.Duration) error {
	err := within(patience, func() error {
		out, err := s.root("squeue", "--steps", "--noheader", "--format=%i")
		for _, id := range strings.Fields(out) {
			if _, number, _ := strings.Cut(id, "."); err == nil && strings.Trim(number, "0123456789") == "" {
				err = fmt.Errorf("step %s still runs", id)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.cluster.StepClock(by)
}

// lasting makes a script of which every step lasts so many seconds.
func lasting(script string, seconds int) string {
	return strings.Replace(script, "${2:-1}", strconv.Itoa(seconds), 1)
}

// begun waits until all these jobs have written of their first step.
func (s *site) begun(names ...string) error {
	return within(patience, func() error {
		for _, name := range names {
			if len(s.trace(name)) == 0 {
				return fmt.Errorf("%s has not begun", name)
			}
		}
		return nil
	})
}

// never sees that the sidecar's events of the last run tell of none of these.
func (s *site) never(kinds ...string) error {
	st, err := store.Open(context.Background(), s.dir+"/db/evoslurm.db")
	if err != nil {
		return err
	}
	defer st.Close()
	events, err := st.Events(context.Background(), 0, 0, 100_000)
	for _, e := range events {
		if slices.Contains(kinds, e.Kind) {
			err = errors.Join(err, fmt.Errorf("event %q %s of job %d", e.Kind, e.Detail, e.Job))
		}
	}
	return err
}
