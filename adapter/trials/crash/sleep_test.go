package crash_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// TestSleep: the machine sleeps, with all that is on it, and wakes up one process
// after the other. Nobody is blamed for what was not done meanwhile.
func TestSleep(t *testing.T) {
	t.Parallel()
	options := merging
	options.ExtraConf = "SlurmdTimeout=300" // Slurm's own
	s := newSite(t, options, "grace: 4s\n")
	s.occupy()
	sleep := func(d time.Duration, seed uint64) {
		thaw := s.Cluster.Freeze()
		time.Sleep(d)
		thaw(seed)
	}
	s.tried(t, "a minute, while jobs run, wait for nodes and are queued", func() {}, func() error {
		jobs := []struct {
			name, script string
			args         []string
			want         []string
		}{
			{"first", evolving, []string{"--profile=3@6s,1@6s"}, steps(3, 1)},
			{"second", evolving, []string{"--profile=1@6s,4@6s"}, steps(1, 4)}, // has to wait for the first's nodes
			{"companion", evolving, []string{"--drive=companion", "--profile=1@6s,2@6s"}, steps(1, 2)},
			{"chain", linked, []string{"--drive=chain", "--profile=1@6s,2@6s,1@6s", "--open-mode=append"}, steps(1, 2, 1)},
			{"queued", evolving, []string{"--profile=5@6s,2@6s"}, steps(5, 2)},
		}
		for i := range jobs {
			j := &jobs[i]
			j.name = s.name(j.name)
			if _, err := s.submit(j.name, lasting(j.script, 5), j.args...); err != nil {
				return err
			}
			if i == 3 {
				if err := s.begun(jobs[0].name, jobs[1].name); err != nil {
					return err
				}
			}
		}
		sleep(time.Minute, 1)
		var errs []error
		for _, j := range jobs {
			errs = append(errs, s.wrote(j.name, j.want))
		}
		return errors.Join(errs...)
	}, "enforced", "requeued")
	for seed := range uint64(3) {
		name := fmt.Sprintf("15 s, in the middle of a change, %d", seed)
		woken := make(chan struct{})
		s.tried(t, name, func() {
			moments := []func([]string) bool{isCommand("salloc"), hasArg("NumNodes=0"), hasArg("NodeList=")}
			s.at(crash.Before, moments[seed], func() {
				go func() { // what asks is to sleep, too
					defer close(woken)
					sleep(15*time.Second, seed)
				}()
			})
		}, func() error {
			job := s.name("grow")
			if _, err := s.submit(job, lasting(evolving, 3), "--profile=1@4s,3@4s,2@4s"); err != nil {
				return err
			}
			<-woken
			return s.wrote(job, steps(1, 3, 2))
		}, "enforced", "requeued")
	}
}
