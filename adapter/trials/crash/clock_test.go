package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestClock sets the clock of the machine, including slurmctld, slurmd, munged, jobs, and the
// sidecar, forward and back by an hour. Jobs whose limit leaves room must do everything they
// should, and no job may count as late.
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
	step := func(g gate) error { return errors.Join(s.stepClock(by), g.open()) }
	// stock Slurm schedules nothing until the time is reached again that it saw last
	restarted := func(g gate) error {
		err := s.stepClock(by)
		if err == nil && by < 0 {
			err = s.restartController()
		}
		return errors.Join(err, g.open())
	}
	// The step during the clock change is short if the job decides, and long by its profile, so
	// that the job does not overrun even on a busy machine.
	for _, c := range []struct {
		name string
		run  func(g gate) error
	}{
		{"jobs run, one waits for the other's nodes", func(g gate) error {
			first, second := s.name("first"), s.name("second")
			// 7 nodes are free: the second gets what the first has given back
			_, err := s.submit(first, g.holds(evolving, 1, 3), "--profile=4@30s,1@4s", "--time=300")
			if err == nil {
				_, err = s.submit(second, g.holds(evolving, 1, 3), "--profile=2@40s,6@4s", "--time=300")
			}
			if err == nil {
				err = s.begun(first, second)
			}
			if err == nil {
				err = step(g) // what runs does not depend on Slurm's queue
			}
			return errors.Join(err, s.wrote(first, steps(4, 1)), s.wrote(second, steps(2, 6)))
		}},
		{"a job is queued", func(g gate) error {
			first, second := s.name("first"), s.name("second")
			_, err := s.submit(first, g.holds(evolving, 1, 3), "--profile=4@30s,5@4s", "--time=300")
			if err == nil {
				err = s.begun(first)
			}
			if err == nil {
				_, err = s.submit(second, lasting(evolving, 3), "--profile=4@4s,6@4s", "--time=300")
			}
			if err == nil {
				err = restarted(g)
			}
			return errors.Join(err, s.wrote(first, steps(4, 5)), s.wrote(second, steps(4, 6)))
		}},
		{"in the middle of a grow", func(gate) error {
			s.at(crash.Before, hasArg("NumNodes=0"), func() {
				if err := s.stepClock(by); err != nil {
					s.t.Error(err)
				}
			})
			name := s.name("grow")
			if _, err := s.submit(name, lasting(evolving, 3), "--profile=1@4s,3@4s,2@4s", "--time=300"); err != nil {
				return err
			}
			return s.wrote(name, steps(1, 3, 2))
		}},
		{"a job is about to be seen to run", func(g gate) error {
			name := s.name("start")
			seen := func(args []string) bool { return hasArg("--jobs=")(args) && s.runs(name) }
			s.at(crash.After, seen, func() {
				err := s.atGate(name)
				if err == nil {
					err = restarted(g)
				}
				if err != nil {
					s.t.Error(err)
				}
			})
			if by < 0 { // its next step is not to be waited for until the time is reached again
				if _, err := s.submit(name, g.keepsOut(lasting(linked, 3)), "--drive=chain", "--profile=1@30s,3@4s,2@4s", "--open-mode=append", "--time=300"); err != nil {
					return err
				}
				return s.wrote(name, steps(1, 3, 2))
			}
			// a step longer than grace: it has not overrun
			if _, err := s.submit(name, g.keepsOut(lasting(evolving, 33)), "--profile=2@35s", "--time=300"); err != nil {
				return err
			}
			return s.wrote(name, steps(2))
		}},
		{"companions", func(g gate) error {
			name := s.name("companion")
			_, err := s.submit(name, g.holds(evolving, 2, 3), "--drive=companion", "--profile=1@4s,3@30s,2@4s,4@4s", "--time=300")
			if err == nil {
				err = within(patience, func() error {
					if len(s.trace(name)) < 2 {
						return errors.New("step 2 has not begun")
					}
					return nil
				})
			}
			if err == nil {
				err = step(g)
			}
			return errors.Join(err, s.wrote(name, steps(1, 3, 2, 4)))
		}},
		{"a chain", func(g gate) error {
			name := s.name("chain")
			_, err := s.submit(name, g.holds(linked, 1, 3), "--drive=chain", "--profile=1@30s,3@4s,2@4s", "--open-mode=append", "--time=300")
			if err == nil {
				err = s.begun(name)
			}
			if by > 0 { // its jobs have limits of minutes, which are over
				if err == nil {
					err = s.stepClock(by)
				}
				return errors.Join(err, within(patience, s.clean), s.wrote(name, steps(1)[:1]))
			}
			if err == nil {
				err = restarted(g)
			}
			return errors.Join(err, s.wrote(name, steps(1, 3, 2)))
		}},
		{"the sidecar is down", func(g gate) error {
			name := s.name("down")
			_, err := s.submit(name, g.holds(evolving, 1, 3), "--profile=1@30s,3@4s,2@4s", "--time=300")
			if err == nil {
				err = s.begun(name)
			}
			s.stop()
			if err == nil {
				err = step(g)
			}
			s.start()
			return errors.Join(err, s.wrote(name, steps(1, 3, 2)))
		}},
	} {
		s.tried(t, c.name, func() {}, func() error {
			err := c.run(s.gate())
			if by < 0 { // the next job must not meet slurmctld in the past, nor its old counts of CPUs
				err = errors.Join(err, s.jobsEnded(), s.restartController())
			}
			return err
		}, "overrun", "enforced", "delayed", "requeued", "leak")
	}
}

// TestSidecarAway: a job is planned and its nodes are held as the sidecar goes for long.
func TestSidecarAway(t *testing.T) {
	t.Parallel()
	options := merging
	options.OwnClock = true
	s := newSite(t, options, "")
	s.occupy()

	// planned submits a job whose start is planned for when another one's time is over
	planned := func(name, script string) (slurmctl.JobID, error) {
		if _, err := s.submit(s.name("before"), "#!/bin/bash\nsleep 12\n", "--profile=7@12s", "--time=300"); err != nil {
			return 0, err
		}
		id, err := s.submit(name, script, "--profile=4@4s,6@4s", "--time=300")
		if err != nil {
			return 0, err
		}
		return id, s.slurmHas(id, "a hold to start in", func(j slurmctl.Job) bool { return j.Reservation != "" })
	}
	// Slurm ends jobs together with the reservation that they run in
	s.tried(t, "Slurm starts the job, the sidecar is back an hour later", func() {}, func() error {
		name, back := s.name("planned"), s.gate()
		id, err := planned(name, back.keepsOut(evolving))
		s.stop()
		if err == nil {
			err = s.slurmHas(id, "a start", func(j slurmctl.Job) bool { return j.State == slurmctl.Running })
		}
		if err == nil {
			err = s.stepClock(time.Hour)
		}
		time.Sleep(2 * limitsLooked)
		s.start()
		return errors.Join(err, back.open(), s.wrote(name, steps(4, 6)))
	}, "requeued")
	s.tried(t, "the job is cancelled: its nodes are not held for long", func() {}, func() error {
		id, err := planned(s.name("cancelled"), evolving)
		s.stop()
		if err == nil {
			_, err = s.as(0, "scancel", strconv.Itoa(int(id)))
		}
		if err == nil {
			err = s.jobsEnded()
		}
		time.Sleep(2 * limitsLooked) // finds that no job is bound to the hold
		if err == nil {
			err = s.stepClock(10 * time.Minute)
		}
		err = errors.Join(err, within(patience, s.clean))
		s.start()
		return err
	})
}

// slurmHas waits until Slurm has a job as it should be.
func (s *site) slurmHas(id slurmctl.JobID, what string, is func(slurmctl.Job) bool) error {
	return within(patience, func() error {
		jobs, err := s.Cluster.Client().JobsByID(context.Background(), id)
		if err == nil && (len(jobs) != 1 || !is(jobs[0])) {
			err = fmt.Errorf("job %d is without %s: %+v", id, what, jobs)
		}
		return err
	})
}

// runs reports whether Slurm runs a job.
func (s *site) runs(name string) bool {
	out, err := s.root("squeue", "--noheader", "--state=running", "--name="+name)
	return err == nil && out != ""
}

// limitsLooked is how often slurmctld looks for jobs and reservations whose time is over.
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
	if err == nil {
		err = within(patience, s.recorded)
	}
	if err != nil {
		return err
	}
	return s.Cluster.StepClock(by)
}

// recorded reports whether slurmdbd knows every job. While slurmctld asks it for a job's index, it refuses changes
// of that job, and if the clock is set back meanwhile, it goes on asking until the old time is reached again.
func (s *site) recorded() error {
	queue, err := s.root("squeue", "--noheader", "--format=%A")
	jobs := strings.Fields(queue)
	if err != nil || len(jobs) == 0 {
		return err
	}
	// jobs from before the clock was set back began in the future
	out, err := s.root("sacct", "--allusers", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw",
		"--starttime=1970-01-01", "--endtime=now+1days", "--jobs="+strings.Join(jobs, ","))
	known := strings.Fields(out)
	for _, id := range jobs {
		if err == nil && !slices.Contains(known, id) {
			err = fmt.Errorf("slurmdbd has no record of job %s", id)
		}
	}
	return err
}

// gate keeps jobs in a step until it is opened: requests to Slurm at the moment of a clock change
// fail or hang because of Slurm itself.
type gate string

// gate returns a new one, which is closed.
func (s *site) gate() gate { return gate(filepath.Join(s.Dir, "out", s.name("gate"))) }

func (g gate) open() error { return os.WriteFile(string(g), nil, 0o644) }

func (g gate) wait() string { return fmt.Sprintf("until [ -e %s ]; do sleep 0.2; done", g) }

// holds makes a script whose steps last that many seconds; in one step, after it has printed its
// nodes, it waits for the gate.
func (g gate) holds(script string, step, seconds int) string {
	return strings.Replace(lasting(script, seconds), "sleep "+strconv.Itoa(seconds)+"\n",
		fmt.Sprintf("sleep %d\nif [ ${EVO_STEP:-1} = %d ]; then %s; fi\n", seconds, step, g.wait()), 1)
}

// keepsOut makes a script that does nothing until the gate is open.
func (g gate) keepsOut(script string) string {
	return strings.Replace(script, "\n", "\n>$1.waits; "+g.wait()+"\n", 1)
}

// atGate waits until a job that is kept out waits.
func (s *site) atGate(name string) error {
	return within(patience, func() error {
		_, err := os.Stat(filepath.Join(s.Dir, "out", name+".waits"))
		return err
	})
}

// restartController restarts slurmctld and waits until it has heard of all nodes, some
// seconds later: a srun is refused until then, and asks again minutes after.
func (s *site) restartController() error {
	if err := s.Cluster.RestartController(context.Background()); err != nil {
		return err
	}
	return within(patience, func() error {
		out, err := s.root("sinfo", "--noheader", "--format=%T %N")
		if err == nil && strings.Contains(out, "unknown") {
			err = fmt.Errorf("nodes that slurmctld does not know: %s", out)
		}
		return err
	})
}

// jobsEnded waits until Slurm has none of the first user's jobs. A batch job whose end
// slurmctld does not learn of because it is restarted has ended only once BatchStartTimeout
// has passed since its start, and with the clock set back that may be in an hour.
func (s *site) jobsEnded() error {
	return within(patience, func() error {
		out, err := s.root("squeue", "--noheader", "--user="+s.Cluster.Users()[0].Name)
		if err == nil && out != "" {
			err = fmt.Errorf("jobs have not ended: %s", out)
		}
		return err
	})
}

// lasting makes a script with steps of that many seconds.
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

// never checks that the sidecar's events of the last run include none of these.
func (s *site) never(kinds ...string) error {
	st, err := store.Open(context.Background(), s.Dir+"/db/evoslurm.db")
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
