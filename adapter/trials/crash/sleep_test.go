package crash_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
)

// Jobs whose srun is tried again where it tells of no node: one that slept while slurmctld
// was to answer gives up, as it does without a sidecar.
const (
	retrying = `#!/bin/bash
while [ -z "$EVO_DONE" ]; do
  until got=$(evosrun --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l) && [ $got -gt 0 ]; do sleep 1; done
  echo "step ${EVO_STEP:-1} on $got" >> $1
  sleep 5
  eval "$(evosctl next)"
done
echo done >> $1
`
	retryingLink = `#!/bin/bash
until got=$(srun sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l) && [ $got -gt 0 ]; do sleep 1; done
echo "step $EVO_STEP on $got" >> $1
sleep 5
if [ $EVO_STEP = $EVO_STEPS ]; then echo done >> $1; fi
`
)

// TestSleep: the machine sleeps, with all that is on it, and wakes up one process
// after the other. Nobody is blamed for what was not done meanwhile.
func TestSleep(t *testing.T) {
	t.Parallel()
	options := merging
	options.ExtraConf = "SlurmdTimeout=300"  // Slurm's own
	s := newSite(t, options, "grace: 20s\n") // twice that is less than the minute, and more than a busy machine is late
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
			{"first", retrying, []string{"--profile=3@6s,1@6s"}, steps(3, 1)},
			{"second", retrying, []string{"--profile=1@6s,4@6s"}, steps(1, 4)}, // has to wait for the first's nodes
			{"companion", retrying, []string{"--drive=companion", "--profile=1@6s,2@6s"}, steps(1, 2)},
			{"chain", retryingLink, []string{"--drive=chain", "--profile=1@6s,2@6s,1@6s", "--open-mode=append"}, steps(1, 2, 1)},
			{"queued", retrying, []string{"--profile=5@6s,2@6s"}, steps(5, 2)},
		}
		for i := range jobs {
			j := &jobs[i]
			j.name = s.name(j.name)
			if _, err := s.submit(j.name, j.script, j.args...); err != nil {
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
				go func() { // the caller must sleep as well
					defer close(woken)
					sleep(15*time.Second, seed)
				}()
			})
		}, func() error {
			job := s.name("grow")
			if _, err := s.submit(job, retrying, "--profile=1@6s,3@6s,2@6s"); err != nil {
				return err
			}
			select {
			case <-woken:
			case <-time.After(10 * time.Minute):
				return errors.New("the change during which it was to sleep has not come in ten minutes")
			}
			return s.wrote(job, steps(1, 3, 2))
		}, "enforced", "requeued")
	}
}
