package crashtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/crashtest"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// enduring is the script of a job whose steps last until they run on the nodes
// that they should have: what Slurm lost in a crash must come back.
const enduring = `#!/bin/bash
name=$1
for want in 1 3 2; do
  for try in $(seq 100); do
    got=$(evosrun --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' 2>>$name.err | sort -u | wc -l)
    if [ $got = $want ]; then break; fi
    sleep 1
  done
  echo "step ${EVO_STEP:-1} on $got" >> $name
  sleep 2
  eval "$(evosctl next)"
done
echo done >> $name
`

// shaken is a cluster that notices dead nodes soon.
func shaken(t *testing.T) *site {
	options := merging
	options.ExtraConf = "SlurmdTimeout=5"
	s := newSite(t, options, "")
	s.occupy()
	return s
}

// at does something once, while the first command that matches waits for it.
func (s *site) at(moment crashtest.Moment, match func(args []string) bool, do func()) {
	done := false
	s.control.mu.Lock()
	defer s.control.mu.Unlock()
	s.control.watch = func(q crashtest.Question) {
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
	if err := s.cluster.KillController(context.Background()); err != nil {
		s.t.Error(err)
	}
	go func() {
		time.Sleep(away)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.cluster.StartController(ctx); err != nil {
			s.t.Error(err)
		}
	}()
}

// stateSaved is how long slurmctld takes to save what has changed.
const stateSaved = 7 * time.Second

// TestInfrastructure: whatever happens around the sidecar, a job gets its nodes,
// later perhaps, and Slurm is clean afterwards.
func TestInfrastructure(t *testing.T) {
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
			s.at(crashtest.After, isCommand("salloc"), func() { s.crashController(time.Second) })
		}},
		{"slurmctld crashes right after a merge", func() {
			s.at(crashtest.After, hasArg("NumNodes=0"), func() { s.crashController(time.Second) })
		}},
		{"slurmctld crashes right after a shrink", func() {
			s.at(crashtest.After, hasArg("NodeList="), func() { s.crashController(time.Second) })
		}},
		{"slurmctld is away for a while in the middle of a grow", func() {
			s.at(crashtest.Before, hasArg("NumNodes=0"), func() { s.crashController(15 * time.Second) })
		}},
		{"scontrol reconfigure in the middle of a grow", func() {
			s.at(crashtest.After, isCommand("salloc"), func() {
				if _, err := s.root("scontrol", "reconfigure"); err != nil {
					s.t.Error(err)
				}
			})
		}},
		{"munged is away at a merge", func() {
			s.at(crashtest.Before, hasArg("NumNodes=0"), func() {
				socket := s.cluster.MungeSocket()
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
	} {
		s.tried(t, c.name, c.set, job)
	}
}

// endured waits until an enduring job has done all its steps.
func (s *site) endured(name string) error { return s.wrote(name, steps(1, 3, 2)) }

// tried is a subtest: from a clean Slurm to a clean Slurm, whatever set makes
// happen.
func (s *site) tried(t *testing.T, name string, set func(), run func() error) {
	t.Run(name, func(t *testing.T) {
		outer := s.t
		s.t = t
		defer func() { s.t = outer }()
		_, _, err := s.try(scenario{run: func(*site) error { set(); return run() }}, 0)
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
		{"dead", func(node string) error { return s.cluster.StopNode(context.Background(), node) },
			func(node string) error { return s.cluster.StartNode(context.Background(), node) }},
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
				err = os.WriteFile(filepath.Join(s.dir, "out", name+".lost"), nil, 0o644)
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

// TestDatabase: the database is full, gone, or somebody else's.
func TestDatabase(t *testing.T) {
	t.Parallel()
	s := shaken(t)
	t.Run("full", func(t *testing.T) {
		s.t = t
		dir := s.dir + "/small"
		s.must(os.Mkdir(dir, 0o700))
		s.must(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"))
		defer syscall.Unmount(dir, syscall.MNT_DETACH)
		config, err := os.ReadFile(s.dir + "/evoslurmd.yaml")
		s.must(err)
		s.must(os.WriteFile(s.dir+"/evoslurmd.yaml", bytes.ReplaceAll(config, []byte(s.dir+"/db/"), []byte(dir+"/")), 0o644))
		defer os.WriteFile(s.dir+"/evoslurmd.yaml", config, 0o644)
		s.control.arm(0)
		s.start()
		name := s.name("full")
		_, err = s.submit(name, enduring, "--profile=1@4s,3@4s,2@4s", "--time=10")
		s.must(err)
		s.eventually("the first step", func() error {
			if got := s.trace(name); len(got) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		// a file that takes all that is left
		fill, err := os.Create(dir + "/fill")
		s.must(err)
		for err == nil {
			_, err = fill.Write(make([]byte, 4096))
		}
		fill.Close()
		s.eventually("the refusal is logged", func() error {
			log, _ := os.ReadFile(s.log.Name())
			if !bytes.Contains(log, []byte("the database refuses")) {
				return errors.New("no word of it")
			}
			return nil
		})
		time.Sleep(2 * time.Second)
		s.must(os.Remove(dir + "/fill"))
		s.must(s.endured(name))
		s.eventually("a clean Slurm", s.clean)
		s.stop()
	})
	t.Run("read-only", func(t *testing.T) {
		s.t = t
		dir := s.dir + "/readonly"
		s.must(os.Mkdir(dir, 0o700))
		s.must(syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=2m"))
		defer syscall.Unmount(dir, syscall.MNT_DETACH)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, bin+"/evoslurmd", "--config", s.dir+"/evoslurmd.yaml", "--database", dir+"/db")
		cmd.Env = append(os.Environ(), s.env()...)
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("read-only")) {
			t.Errorf("a read-only database: %v\n%s", err, out)
		}
	})
	t.Run("deleted while the sidecar is down", func(t *testing.T) {
		s.t = t
		for _, drive := range []string{"merge", "companion"} {
			s.control.arm(0)
			s.start()
			name, parked := s.name("running"), s.name("parked")
			script := strings.Replace(enduring, "sleep 2", "sleep 6", 1)
			id, err := s.submit(name, script, "--drive="+drive, "--profile=1@7s,3@7s,2@7s", "--time=10")
			s.must(err)
			s.eventually("the second step", func() error {
				if got := s.trace(name); len(got) != 2 {
					return fmt.Errorf("%q", got)
				}
				return nil
			})
			s.stop()
			_, err = s.submit(parked, enduring, "--drive="+drive, "--profile=1@4s,3@4s,2@4s", "--time=10")
			s.must(err)
			s.must(os.RemoveAll(s.dir + "/db"))
			s.start()
			s.eventually("the job is adopted again", func() error {
				j, err := s.job(id)
				if err == nil && j.Step < 2 {
					err = fmt.Errorf("in step %d", j.Step)
				}
				return err
			})
			s.must(s.endured(name))
			s.must(s.endured(parked))
			s.eventually("a clean Slurm", s.clean)
			s.stop()
			s.must(os.RemoveAll(s.dir + "/db"))
		}
	})
	t.Run("a chain's rest", func(t *testing.T) {
		s.t = t
		s.start()
		name := s.name("chain")
		script := "#!/bin/bash\necho step $EVO_STEP on $(srun sh -c 'echo $SLURMD_NODENAME' | sort -u | wc -l) >> $1\nsleep 6\n" +
			"if [ $EVO_STEP = $EVO_STEPS ]; then echo done >> $1; fi\n"
		_, err := s.submit(name, script, "--drive=chain", "--profile=1@8s,3@8s,2@8s", "--open-mode=append")
		s.must(err)
		s.eventually("the second step", func() error {
			if got := s.trace(name); len(got) != 2 {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
		s.stop()
		s.must(os.RemoveAll(s.dir + "/db"))
		s.start()
		s.must(s.endured(name))
		s.eventually("a clean Slurm", s.clean)
		s.stop()
	})
	t.Run("two sidecars", func(t *testing.T) {
		s.t = t
		s.start()
		s.eventually("the first works", func() error { _, err := s.jobs(); return err })
		second := s.sidecar()
		log, err := os.Create(filepath.Join(s.dir, "second.log"))
		s.must(err)
		defer log.Close()
		second.Stderr = log
		s.must(second.Start())
		said := func(what string) func() error {
			return func() error {
				text, _ := os.ReadFile(log.Name())
				if !bytes.Contains(text, []byte(what)) {
					return fmt.Errorf("it says %q", text)
				}
				return nil
			}
		}
		s.eventually("the second waits", said("waiting to take over"))
		name := s.name("two")
		_, err = s.submit(name, enduring, "--profile=1@4s,3@4s,2@4s", "--time=10")
		s.must(err)
		s.eventually("the first step", func() error {
			if got := s.trace(name); len(got) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		if said("serving the API")() == nil {
			t.Error("the second works beside the first")
		}
		s.mu.Lock()
		s.stopped = true // not to be started again
		s.mu.Unlock()
		s.crash()
		s.restart.Wait()
		s.eventually("the second takes over", said("serving the API"))
		s.must(s.endured(name))
		s.eventually("a clean Slurm", s.clean)
		s.must(second.Process.Signal(syscall.SIGTERM))
		s.must(second.Wait())
		s.mu.Lock()
		s.daemon = nil
		s.mu.Unlock()
	})
}
