package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/trials/crash"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// enduring is the script of a job whose steps last until they run on the nodes
// that they should have: what Slurm lost in a crash must come back. Its srun leaves asking
// again to it: srun's own next try comes after a minute if the job is smaller than it was
// (a crash has rolled back a merge) or slurmctld, just started, has not heard of its nodes.
// And it minds no other step: one that ended after slurmctld had last saved its state is
// there again after a crash, and stays as long as the job.
const enduring = `#!/bin/bash
name=$1
for want in 1 3 2; do
  for try in $(seq 100); do
    got=$(evosrun --immediate=5 --overlap --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' 2>>$name.err | sort -u | wc -l)
    if [ $got = $want ]; then break; fi
    sleep 1
  done
  echo "step ${EVO_STEP:-1} on $got" >> $name
  sleep 2
  eval "$(evosctl next)"
done
echo done >> $name
`

// shaken returns a cluster that notices dead nodes soon.
func shaken(t *testing.T) *site {
	options := merging
	options.ExtraConf = "SlurmdTimeout=5"
	s := newSite(t, options, "")
	s.occupy()
	return s
}

// at does something once, while the first matching command waits for it; tried checks that it
// happened. (There is no moment after salloc: the sidecar kills it as soon as it has printed the
// allocation.)
func (s *site) at(moment crash.Moment, match func(args []string) bool, do func()) {
	done := false
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	s.control.unmet = &done
	s.control.watch = func(q crash.Question) {
		if !done && q.Moment == moment && len(q.Args) > 0 && match(q.Args) {
			done = true
			do()
		}
	}
}

func isCommand(name string) func([]string) bool {
	return func(args []string) bool { return args[0] == name }
}

func hasArg(prefix string) func([]string) bool {
	return func(args []string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, prefix) })
	}
}

// crashController kills slurmctld and starts it again after a while.
func (s *site) crashController(away time.Duration) {
	if err := s.Cluster.KillController(context.Background()); err != nil {
		s.t.Error(err)
	}
	go func() {
		time.Sleep(away)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Cluster.StartController(ctx); err != nil {
			s.t.Error(err)
		}
	}()
}

// stateSaved is how long slurmctld takes to save what has changed.
const stateSaved = 7 * time.Second

// TestController: whatever happens to slurmctld, a job gets its nodes, later perhaps,
// and Slurm is clean afterwards.
func TestController(t *testing.T) {
	t.Parallel()
	s := shaken(t)
	job := func() error {
		// slurmctld saves its state every five seconds: a job that is younger is
		// lost with a crash, one that ended later comes back
		time.Sleep(stateSaved)
		name := s.name("job")
		script := strings.Replace(enduring, "sleep 2", fmt.Sprintf("sleep $([ ${EVO_STEP:-1} = 1 ] && echo %.0f || echo 2)", stateSaved.Seconds()), 1)
		if _, err := s.submit(name, script, "--profile=1@10s,3@4s,2@4s", "--time=10"); err != nil {
			return err
		}
		return s.endured(name)
	}
	for _, c := range []struct {
		name string
		set  func()
	}{
		{"slurmctld crashes in the middle of a grow", func() {
			s.at(crash.Before, hasArg("NumNodes=0"), func() { s.crashController(time.Second) })
		}},
		{"slurmctld crashes right after a merge", func() {
			s.at(crash.After, hasArg("NumNodes=0"), func() { s.crashController(time.Second) })
		}},
		{"slurmctld crashes right after a shrink", func() {
			s.at(crash.After, hasArg("NodeList="), func() { s.crashController(time.Second) })
		}},
		{"slurmctld is away for a minute as an expander is asked for", func() {
			s.at(crash.Before, isCommand("salloc"), func() { s.crashController(time.Minute) })
		}},
		{"scontrol reconfigure in the middle of a grow", func() {
			s.at(crash.Before, hasArg("NumNodes=0"), func() {
				if _, err := s.root("scontrol", "reconfigure"); err != nil {
					s.t.Error(err)
				}
			})
		}},
	} {
		s.tried(t, c.name, c.set, job)
	}
}

// endured waits until an enduring job has done all its steps.
func (s *site) endured(name string) error { return s.wrote(name, steps(1, 3, 2)) }

// tried is a subtest: from a clean Slurm to a clean Slurm, whatever set makes
// happen. The sidecar must tell of no event of the kinds that are named.
func (s *site) tried(t *testing.T, name string, set func(), run func() error, never ...string) {
	t.Run(name, func(t *testing.T) {
		outer := s.t
		s.t = t
		defer func() { s.t = outer }()
		_, _, err := s.try(scenario{run: func(*site) error { set(); return run() }}, 0)
		if err == nil {
			err = s.never(never...)
		}
		s.control.mu.Lock()
		if err == nil && s.control.unmet != nil && !*s.control.unmet {
			err = errors.New("what was to happen at some command never did")
		}
		s.control.mu.Unlock()
		if err != nil {
			t.Errorf("%v\n%s", err, s.story())
			if err := s.clear(); err != nil {
				outer.Fatal(err)
			}
		}
	})
}

// TestNodes: nodes that are held for a growth are lost before it comes.
func TestNodes(t *testing.T) {
	t.Parallel()
	s := shaken(t)
	for _, c := range []struct {
		name       string
		lose, mend func(node string) error
	}{
		{"drained", func(node string) error {
			_, err := s.root("scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason=test")
			return err
		}, func(node string) error {
			_, err := s.root("scontrol", "update", "NodeName="+node, "State=RESUME")
			return err
		}},
		{"dead", func(node string) error { return s.Cluster.StopNode(context.Background(), node) },
			func(node string) error { return s.Cluster.StartNode(context.Background(), node) }},
	} {
		node := ""
		s.tried(t, c.name, func() {}, func() error {
			name := s.name("node")
			// the first step lasts until Slurm knows of the loss: a job whose node
			// fails later is requeued
			script := strings.Replace(enduring, "sleep 2", "until [ -e $name.lost ]; do sleep 0.2; done", 1)
			id, err := s.submit(name, script, "--profile=1@15s,3@4s,2@4s", "--time=10")
			if err != nil {
				return err
			}
			err = within(patience, func() error {
				j, err := s.job(id)
				if err != nil || j.State != "running" || len(j.Plan) != 3 {
					return fmt.Errorf("%+v %v", j, err)
				}
				planned, err := slurmctl.ExpandNodes(j.Plan[1].NodeList)
				for _, n := range planned {
					if n != j.NodeList {
						node = n
					}
				}
				return err
			})
			if err == nil {
				err = c.lose(node)
			}
			if err == nil {
				err = within(patience, func() error {
					state, err := s.root("sinfo", "--noheader", "--nodes="+node, "--format=%t")
					if err == nil && !strings.HasPrefix(state, "d") {
						err = fmt.Errorf("%s is %s", node, state)
					}
					return err
				})
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(s.Dir, "out", name+".lost"), nil, 0o644)
			}
			if err == nil {
				err = s.endured(name)
			}
			if node != "" {
				err = errors.Join(err, c.mend(node))
			}
			return err
		})
	}
}
