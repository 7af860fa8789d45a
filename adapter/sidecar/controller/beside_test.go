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

// slowCommands puts shims before Slurm's commands. They log when each ran, and sleep if the shell
// pattern matches scontrol's arguments, as slurmctld does while its backfill scheduler holds the
// locks.
func (l *lab) slowCommands() (dir string, slow func(pattern string, seconds int)) {
	l.t.Helper()
	dir = l.t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		l.must(os.Chmod(d, 0o1777)) // expanders are asked for by users
	}
	set := func(pattern string, seconds int) {
		l.must(os.WriteFile(dir+"/slow.new", fmt.Appendf(nil, "case \"$*\" in %s) sleep %d;; esac\n", pattern, seconds), 0o644))
		l.must(os.Rename(dir+"/slow.new", dir+"/slow"))
	}
	set("none", 0)
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

// TestNothingDueWaits checks that a growth has its nodes in time even if slurmctld delays changes
// that are not urgent, and that the sidecar continues to poll.
func TestNothingDueWaits(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, func(c *config.Config) { c.HoldAhead = 24 * time.Hour })
	l.stop()
	dir, slow := l.slowCommands()
	l.slurm.Dir = dir
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
	// from now on planned starts (uts…) and holds of all other jobs take 12 s each
	slow(fmt.Sprintf("*evo_%d_*) ;; *StartTime=uts*|create*|*ReservationName=*", id), 12)
	var others []uint32
	for range 12 {
		others = append(others, l.submit("4@30m,8@30m"))
	}
	worst, last := time.Duration(0), time.Now()
	begun := time.Now()
	for time.Since(begun) < 15*time.Second {
		s, err := l.Status(context.Background())
		l.must(err)
		if s.LastCycle.After(last) {
			worst, last = max(worst, s.LastCycle.Sub(last)), s.LastCycle
		}
		time.Sleep(20 * time.Millisecond)
	}
	if worst = max(worst, time.Since(last)); worst > 9*time.Second {
		t.Errorf("%v from one poll to the next while changes that can wait take 12 s each", worst)
	}
	called := time.Now()
	job, err := l.Job(context.Background(), id)
	l.must(err)
	due := job.Plan[1].Start
	a := l.next(id, 1)
	l.has(a, 5)
	if due.Before(called) {
		due = called
	}
	if late := time.Since(due); late > 9*time.Second {
		t.Errorf("the growth came %v after it was due", late)
	}
	delayed := 0
	for _, c := range l.commands(dir) {
		if c.ended-c.begun >= int64(12*time.Second) {
			delayed++
		}
	}
	if delayed == 0 {
		t.Error("no change was delayed: nothing was tried")
	}
	slow("none", 0)
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
	slow("update*|create*|delete*", 1)
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
