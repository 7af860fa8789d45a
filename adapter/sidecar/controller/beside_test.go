package controller_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// slowCommands puts shims before Slurm's commands. They log when each ran, and first do something if the shell
// pattern matches scontrol's arguments, such as to sleep, as slurmctld does while its backfill scheduler holds the
// locks.
func (l *lab) slowCommands() (dir string, slow func(pattern, first string)) {
	l.t.Helper()
	dir = l.t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		l.must(os.Chmod(d, 0o1777)) // expanders are asked for by users
	}
	set := func(pattern, first string) {
		l.must(os.WriteFile(dir+"/slow.new", fmt.Appendf(nil, "case \"$*\" in %s) %s;; esac\n", pattern, first), 0o644))
		l.must(os.Rename(dir+"/slow.new", dir+"/slow"))
	}
	set("none", ":")
	l.must(os.WriteFile(dir+"/log", nil, 0o666))
	l.must(os.Chmod(dir+"/log", 0o666))
	for _, name := range []string{"squeue", "sinfo", "scontrol", "scancel", "salloc", "sdiag"} {
		path, err := exec.LookPath(name)
		l.must(err)
		text := fmt.Sprintf("#!/bin/sh\n%s \"$@\"\n", path)
		if name == "scontrol" {
			text = fmt.Sprintf("#!/bin/sh\nbegun=$(date +%%s%%N)\n. %s/slow\n%s \"$@\"; rc=$?\necho \"$begun $(date +%%s%%N) $*\" >>%s/log\nexit $rc\n", dir, path, dir)
		}
		l.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return dir, set
}

// command is one run of scontrol.
type command struct {
	begun, ended int64 // ns
	args         string
}

func (l *lab) commands(dir string) (all []command) {
	l.t.Helper()
	f, err := os.Open(dir + "/log")
	l.must(err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c command
		begun, rest, _ := strings.Cut(lines.Text(), " ")
		ended, args, _ := strings.Cut(rest, " ")
		c.begun, _ = strconv.ParseInt(begun, 10, 64)
		c.ended, _ = strconv.ParseInt(ended, 10, 64)
		c.args = args
		all = append(all, c)
	}
	return all
}

// TestNothingDueWaits checks that a growth has its nodes even while slurmctld carries out no change that is not urgent,
// and that the sidecar continues to poll.
func TestNothingDueWaits(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.HoldAhead = 24 * time.Hour })
	l.stop()
	dir, slow := l.slowCommands()
	l.slurm.Dir, l.slurm.Timeout = dir, time.Hour // a command that waits is not given up
	l.start()
	id := l.submit("2@18s,5@60s")
	l.running(id, 1)
	l.eventually("the growth is held", func() error {
		left, err := l.cluster.Leftovers(l.ctx())
		if err == nil && len(left.Reservations) == 0 {
			err = fmt.Errorf("no reservation")
		}
		return err
	})
	// from now on planned starts (uts…) and holds of all other jobs wait until the test lets them go
	slow(fmt.Sprintf("*evo_%d_*) ;; *StartTime=uts*|create*|*ReservationName=*", id), fmt.Sprintf("touch %[1]s/waits; while [ ! -e %[1]s/go ]; do sleep 0.1; done", dir))
	var others []uint32
	for range 12 {
		others = append(others, l.submit("4@30m,8@30m"))
	}
	l.eventually("a change waits", func() error {
		_, err := os.Stat(dir + "/waits")
		return err
	})
	last, polls := time.Now(), 0
	l.eventually("polls go on", func() error {
		s, err := l.Status(context.Background())
		if err == nil && s.LastCycle.After(last) {
			last, polls = s.LastCycle, polls+1
		}
		if err == nil && polls < 3 {
			err = fmt.Errorf("%d polls", polls)
		}
		return err
	})
	l.has(l.next(id, 1), 5) // it overtakes all of them
	l.must(os.WriteFile(dir+"/go", nil, 0o644))
	slow("none", ":")
	l.cancel(id)
	for _, other := range others {
		l.cancel(other)
	}
	l.clean()
}

// An ended job's leftovers belong to no job: they are deleted together.
var changedJob = regexp.MustCompile(`^(?:update|create).*(?:ReservationName=evo_|JobId=)([0-9]+)`)

// TestOneChangeAJob: however slow Slurm is, a job's changes come one after the other.
func TestOneChangeAJob(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.HoldAhead = time.Hour })
	l.stop()
	dir, slow := l.slowCommands()
	l.slurm.Dir = dir
	slow("update*|create*|delete*", "sleep 1")
	l.start()
	first, second := l.submit("2@15s,4@15s,1@60s"), l.submit("2@15s,4@15s,1@60s")
	third := l.submit("6@60s,8@60s")
	for _, id := range []uint32{first, second} {
		l.running(id, 1)
	}
	for step, nodes := range []int{4, 1} {
		for _, id := range []uint32{first, second} {
			l.has(l.next(id, step+1), nodes)
		}
	}
	for _, id := range []uint32{first, second, third} {
		l.cancel(id)
	}
	l.clean()
	byJob, atOnce := map[string][]command{}, 0
	all := l.commands(dir)
	slices.SortFunc(all, func(a, b command) int { return int(a.begun - b.begun) })
	for _, c := range all {
		if m := changedJob.FindStringSubmatch(c.args); m != nil {
			byJob[m[1]] = append(byJob[m[1]], c)
		}
	}
	var last command
	for id, list := range byJob {
		for i, c := range list {
			if i > 0 && c.begun < list[i-1].ended {
				t.Errorf("job %s: %q began before the end of %q", id, c.args, list[i-1].args)
			}
		}
	}
	for _, c := range all {
		if c.begun < last.ended {
			atOnce++
		}
		if c.ended > last.ended {
			last = c
		}
	}
	if len(byJob) < 3 || atOnce == 0 {
		t.Errorf("changes of %d jobs, %d of them side by side: nothing was tried", len(byJob), atOnce)
	}
}
