package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// scenario is something that happens on a cluster, from a clean Slurm to a clean
// Slurm.
type scenario struct {
	name    string
	options slurmtest.Options
	run     func(s *site) error // submits, and waits until the jobs have done all that they should
}

// merging is a cluster where expanders are merged; a job can be resized again and
// again.
var merging = slurmtest.Options{Accounting: true, PermitJobExpansion: true}

// healing has the sidecar repair nodes that Slurm leaks if a job is cancelled at the moment of a merge (docs/slurm-bugs.md). The
// check right before each merge leaves a moment, which the scenario cancel meets now and then on a busy machine.
const healing = "heal_leaks: true\n"

var scenarios = []scenario{
	{"grow", merging, func(s *site) error { return s.evolve("merge", "1@2s,3@2s", 1, 3) }},
	{"shrink", merging, func(s *site) error { return s.evolve("merge", "3@2s,1@2s", 3, 1) }},
	{"merge", merging, func(s *site) error {
		return s.evolve("merge", "1@2s,3@2s,2@2s", 1, 3, 2)
	}},
	{"companion", slurmtest.Options{}, func(s *site) error {
		return s.evolve("companion", "1@2s,3@2s,2@2s", 1, 3, 2)
	}},
	{byTheJob, slurmtest.Options{}, func(s *site) error { return s.evolve("companion", "1@2s,3@2s,2@2s", 1, 3, 2) }},
	{"chain", slurmtest.Options{}, (*site).chain},
	{"cancel", merging, (*site).cancelInGrowth},
	{"replan", merging, (*site).replan},
}

// byTheJob is the scenario in which the sidecar is SlurmUser, and the job's own process submits its companions.
const byTheJob = "by the job"

// evolving is the script of a job that tells in every step on how many nodes its
// tasks really run.
const evolving = `#!/bin/bash
while [ -z "$EVO_DONE" ]; do
  echo "step ${EVO_STEP:-1} on $(evosrun --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l)" >> $1
  sleep ${2:-1}
  eval "$(evosctl next)"
done
echo done >> $1
`

// steps returns what such a job writes if all goes well.
func steps(nodes ...int) []string {
	var lines []string
	for i, n := range nodes {
		lines = append(lines, fmt.Sprintf("step %d on %d", i+1, n))
	}
	return append(lines, "done")
}

// patience is how long a job may take for steps of seconds: a killed sidecar comes
// back within a second, but commands may hang and a machine may be busy.
const patience = 6 * time.Minute

func (s *site) wrote(name string, want []string) error {
	return within(patience, func() error {
		got := s.trace(name)
		if !slices.Equal(got, want) {
			err := fmt.Errorf("%s wrote %q, want %q", name, got, want)
			return err
		}
		return nil
	})
}

func (s *site) evolve(drive, profile string, nodes ...int) error {
	name := s.name("evolve")
	if _, err := s.submit(name, evolving, "--drive="+drive, "--profile="+profile); err != nil {
		return err
	}
	return s.wrote(name, steps(nodes...))
}

// name returns a new name for a job.
func (s *site) name(prefix string) string {
	entries, _ := os.ReadDir(s.Dir + "/out")
	return prefix + "-" + strconv.Itoa(len(entries))
}

// linked is the like for the jobs of a chain.
const linked = `#!/bin/bash
echo step $EVO_STEP on $(srun sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l) >> $1
sleep ${2:-1}
if [ $EVO_STEP = $EVO_STEPS ]; then echo done >> $1; fi
`

func (s *site) chain() error {
	name := s.name("chain")
	if _, err := s.submit(name, linked, "--drive=chain", "--profile=1@2s,3@2s,2@2s", "--open-mode=append"); err != nil {
		return err
	}
	return s.wrote(name, steps(1, 3, 2))
}

// cancelInGrowth cancels a job while its expander is asked for.
func (s *site) cancelInGrowth() error {
	asked := make(chan struct{}, 1)
	s.control.mu.Lock()
	s.control.watch = func(q crash.Question) {
		if len(q.Args) > 0 && s.growing(q.Args) {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}
	s.control.mu.Unlock()
	name := s.name("cancelled")
	id, err := s.submit(name, evolving, "--drive=merge", "--profile=1@2s,3@2s,2@2s")
	if err != nil {
		return err
	}
	select {
	case <-asked:
	case <-time.After(patience):
		return errors.New("no expander was ever asked for")
	}
	if _, err := s.as(0, "scancel", strconv.Itoa(int(id))); err != nil {
		return err
	}
	return within(patience, func() error {
		jobs, err := s.Cluster.Client().JobsByID(context.Background(), id)
		if err == nil && (len(jobs) != 1 || jobs[0].State != slurmctl.Cancelled) {
			err = fmt.Errorf("the job is %+v, want cancelled", jobs)
		}
		if trace := s.trace(name); err == nil && (len(trace) == 0 || trace[0] != "step 1 on 1") {
			err = fmt.Errorf("the job wrote %q", trace)
		}
		return err
	})
}

// replan has a second job that must wait for the first, which ends its steps
// earlier than it said.
func (s *site) replan() error {
	first, second := s.name("first"), s.name("second")
	if _, err := s.submit(first, evolving, "--drive=merge", "--profile=2@3s,5@3s,1@2s"); err != nil {
		return err
	}
	if _, err := s.submit(second, evolving, "--drive=merge", "--profile=3@2s,6@2s"); err != nil {
		return err
	}
	return errors.Join(s.wrote(first, steps(2, 5, 1)), s.wrote(second, steps(3, 6)))
}

// clear ends whatever a failed scenario has left, for the next.
func (s *site) clear() error {
	user := s.Cluster.Users()[0].Name
	s.root("scancel", "--user="+user)
	return within(patience, func() error {
		reservations, err := s.Cluster.Client().Reservations(context.Background())
		for _, r := range reservations {
			s.root("scontrol", "delete", "ReservationName="+r.Name)
		}
		return errors.Join(err, s.clean())
	})
}

// checkStore sees that the database is sound and its event log consistent. The
// sidecar must be stopped.
func (s *site) checkStore() error { return s.checkStoreAt(s.Dir + "/db/evoslurm.db") }

func (s *site) checkStoreAt(path string) error {
	st, err := store.Open(context.Background(), path)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Check(context.Background()); err != nil {
		return err
	}
	events, err := st.Events(context.Background(), 0, 0, 100_000)
	if err != nil {
		return err
	}
	active, err := st.ActiveJobs(context.Background())
	if err != nil {
		return err
	}
	if len(active) > 0 {
		return fmt.Errorf("jobs that have ended are not known to: %+v", active[0])
	}
	intents, err := st.OpenIntents(context.Background())
	if err != nil {
		return err
	}
	if len(intents) > 0 {
		return fmt.Errorf("intents that are not settled: %+v", intents)
	}
	return consistent(events)
}

// consistent sees that the events of every job tell one life: adopted, started,
// every step ended before the next begins, ended, each once.
func consistent(events []store.Event) error {
	lives := map[int64][]string{}
	for _, e := range events {
		var detail struct{ Step int }
		if err := json.Unmarshal(e.Detail, &detail); err != nil {
			return fmt.Errorf("event %d: %w", e.ID, err)
		}
		switch e.Kind {
		case "adopted", "started":
			lives[e.Job] = append(lives[e.Job], e.Kind)
		case "step ended", "step begun", "ended":
			lives[e.Job] = append(lives[e.Job], fmt.Sprintf("%s %d", e.Kind, detail.Step))
		}
	}
	for job, life := range lives {
		if slices.Equal(life, []string{"adopted", "ended 0"}) {
			continue // cancelled before it started
		}
		step := 1
		want := []string{"adopted", "started"}
		for ; slices.Contains(life, fmt.Sprintf("step begun %d", step+1)); step++ {
			want = append(want, fmt.Sprintf("step ended %d", step), fmt.Sprintf("step begun %d", step+1))
		}
		short := slices.Concat(want, []string{fmt.Sprintf("ended %d", step)})
		if slices.Contains(life, fmt.Sprintf("step ended %d", step)) {
			want = append(want, fmt.Sprintf("step ended %d", step))
		}
		want = append(want, fmt.Sprintf("ended %d", step))
		if !slices.Equal(life, want) && !slices.Equal(life, short) {
			return fmt.Errorf("events of job %d: %s; want %s", job, strings.Join(life, ", "), strings.Join(want, ", "))
		}
	}
	if len(lives) == 0 {
		return errors.New("the event log tells of no job")
	}
	return nil
}
