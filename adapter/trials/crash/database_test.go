package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDatabase covers a database that is full, gone, or used by another process.
func TestDatabase(t *testing.T) {
	t.Parallel()
	s := shaken(t)
	for _, c := range []struct {
		name        string
		prepare     func(dir string)
		spoil, mend func(dir string) error
	}{
		{"full for a while", func(dir string) {
			s.must(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"))
			t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
		}, func(dir string) error { // a file that takes all that is left
			fill, err := os.Create(dir + "/fill")
			if err != nil {
				return err
			}
			for err == nil {
				_, err = fill.Write(make([]byte, 4096))
			}
			return fill.Close()
		}, func(dir string) error { return os.Remove(dir + "/fill") }},
		{"read-only for a while", func(dir string) {
			library := s.Dir + "/readonly.so"
			out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", library, "testdata/readonly.c", "-ldl").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s.more = []string{"LD_PRELOAD=" + library, "CRASHTEST_READONLY=" + dir}
		}, func(dir string) error { return os.WriteFile(dir+".readonly", nil, 0o644) },
			func(dir string) error { return os.Remove(dir + ".readonly") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			dir := filepath.Join(s.Dir, strings.ReplaceAll(c.name, " ", "-"))
			s.must(os.Mkdir(dir, 0o700))
			c.prepare(dir)
			defer func() { s.more = nil }()
			config, err := os.ReadFile(s.Dir + "/evoslurmd.yaml")
			s.must(err)
			s.must(os.WriteFile(s.Dir+"/evoslurmd.yaml", bytes.ReplaceAll(config, []byte(s.Dir+"/db/"), []byte(dir+"/")), 0o644))
			defer os.WriteFile(s.Dir+"/evoslurmd.yaml", config, 0o644)
			s.control.arm(0)
			s.must(s.log.Truncate(0)) // another subtest's sidecar logged a refusal as well
			s.start()
			// the first grows, the second's steps need nothing of Slurm, the third comes
			// while the database is spoilt and the fourth ends
			grows, keeps, comes, ends := s.name("grows"), s.name("keeps"), s.name("comes"), s.name("ends")
			for _, name := range []string{grows, keeps, ends} {
				profile := "--profile=1@4s,3@4s,2@4s"
				if name != grows {
					profile = "--profile=1@4s,1@4s"
				}
				_, err = s.submit(name, lasting(evolving, 3), profile, "--time=10")
				s.must(err)
			}
			s.must(s.begun(grows, keeps, ends))
			s.must(c.spoil(dir))
			_, err = s.submit(comes, evolving, "--profile=1@4s,2@4s", "--time=10")
			s.must(err)
			s.eventually("the refusal is logged", func() error {
				log, _ := os.ReadFile(s.log.Name())
				if !bytes.Contains(log, []byte("the database refuses")) {
					return errors.New("no word of it")
				}
				return nil
			})
			_, err = s.as(0, "scancel", "--jobname="+ends)
			s.must(err)
			s.must(s.wrote(keeps, steps(1, 1))) // jobs go on
			if got := s.trace(comes); len(got) > 0 {
				t.Errorf("a job was started though that could not be written down: %q", got)
			}
			s.must(c.mend(dir))
			s.must(s.wrote(grows, steps(1, 3, 2)))
			s.must(s.wrote(comes, steps(1, 2)))
			s.eventually("a clean Slurm", s.clean)
			s.eventually("the sidecar knows", s.settled)
			s.stop()
			s.must(s.checkStoreAt(dir + "/evoslurm.db"))
		})
	}
	t.Run("read-only", func(t *testing.T) {
		s.t = t
		dir := s.Dir + "/readonly"
		s.must(os.Mkdir(dir, 0o700))
		s.must(syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=2m"))
		defer syscall.Unmount(dir, syscall.MNT_DETACH)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, bin+"/evoslurmd", "--config", s.Dir+"/evoslurmd.yaml", "--database", dir+"/db")
		cmd.Env = append(os.Environ(), s.Env()...)
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("read-only")) {
			t.Errorf("a read-only database: %v\n%s", err, out)
		}
	})
	t.Run("deleted while the sidecar works", func(t *testing.T) {
		s.t = t
		s.control.arm(0)
		s.start()
		name, queued := s.name("running"), s.name("queued")
		_, err := s.submit(name, lasting(evolving, 5), "--profile=4@6s,5@6s,2@6s", "--time=10")
		s.must(err)
		s.must(s.begun(name))
		_, err = s.submit(queued, evolving, "--profile=5@4s,2@4s", "--time=10")
		s.must(err)
		s.eventually("it is adopted", func() error {
			jobs, err := s.Jobs(1)
			if err == nil && len(jobs) != 2 {
				err = fmt.Errorf("%d jobs", len(jobs))
			}
			return err
		})
		s.must(os.RemoveAll(s.Dir + "/db"))
		s.must(s.wrote(name, steps(4, 5, 2)))
		s.must(s.wrote(queued, steps(5, 2)))
		s.eventually("a clean Slurm", s.clean)
		s.stop()
		log, _ := os.ReadFile(s.log.Name())
		if !bytes.Contains(log, []byte("the file was deleted or replaced")) {
			t.Errorf("nobody noticed:\n%s", log)
		}
		s.must(os.RemoveAll(s.Dir + "/db"))
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
			s.must(os.RemoveAll(s.Dir + "/db"))
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
			s.must(os.RemoveAll(s.Dir + "/db"))
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
		s.must(os.RemoveAll(s.Dir + "/db"))
		s.start()
		s.must(s.endured(name))
		s.eventually("a clean Slurm", s.clean)
		s.stop()
	})
	t.Run("two sidecars", func(t *testing.T) {
		s.t = t
		s.start()
		s.eventually("the first works", func() error { _, err := s.Jobs(1); return err })
		second := s.sidecar()
		log, err := os.Create(filepath.Join(s.Dir, "second.log"))
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
		s.must(second.Process.Signal(syscall.SIGHUP))
		s.eventually("the second reads its configuration again, and waits on", said("configuration read again"))
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
