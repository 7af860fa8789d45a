package slurmtest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestStepClock checks that daemons, clients, and jobs use the cluster's clock.
func TestStepClock(t *testing.T) {
	c := Start(t, Options{Nodes: 2, OwnClock: true})
	number := func(text string) int64 {
		t.Helper()
		n, err := strconv.ParseInt(text, 10, 64)
		must.OK(t, err)
		return n
	}
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
		must.OK(t, c.StepClock(step))
		about := func(what string, got int64) {
			t.Helper()
			if off := got - c.Now().Unix(); off < -30 || off > 0 {
				t.Errorf("%s: %d s from the cluster's time", what, off)
			}
		}
		if step < 0 { // slurmctld's scheduler waits until the time is reached again that it saw last
			must.OK(t, c.RestartController(t.Context()))
		}
		about("a client", number(run(t, c, c.Users()[0], "date", "+%s")))
		batch(t, c, c.Users()[0], "--output=job.out", "--error=/dev/null", "--wrap=srun date +%s")
		about("a job's step", number(run(t, c, c.Users()[0], "cat", "job.out")))
		about("slurmctld", number(start(t, c)))
	}
	if err := (&Cluster{}).StepClock(time.Hour); err == nil {
		t.Error("the clock of a cluster that has none of its own was stepped")
	}
	clean(t, c)
}

// start returns when the last job began.
func start(t *testing.T, c *Cluster) string {
	t.Helper()
	text := run(t, c, Root, "env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-t", "all", "-o", "%S", "--sort=-i")
	for i, r := range text {
		if r == '\n' {
			return text[:i]
		}
	}
	return text
}

// TestMungeOfAnotherClock checks from when on Slurm answers a host whose clock differs: MUNGE refuses credentials that
// are five minutes old or new.
func TestMungeOfAnotherClock(t *testing.T) {
	c := Start(t, Options{Nodes: 1, OwnClock: true})
	dir := c.site.dir + "/munge"
	other, conf := dir+"/other", c.site.dir+"/other.conf"
	d, err := c.sup.start(t.Context(), request{
		Name: "munged.other", Path: daemonPath("munged"),
		Argv: []string{"munged", "--foreground", "--key-file=" + dir + "/key", "--socket=" + other, "--pid-file=" + other + ".pid",
			"--seed-file=" + other + ".seed", "--group-update-time=-1"},
		Env: daemonEnv(), Dir: "/", Output: c.site.dir + "/log/munged-other.log", User: account("munge"), // by the machine's clock
	})
	must.OK(t, err)
	must.OK(t, d.until(t.Context(), func() bool { return accepts("unix", other) }))
	must.OK(t, os.WriteFile(conf, []byte(strings.ReplaceAll(string(must.Read(t, c.site.conf())), c.site.mungeSocket(), other)), 0o644))
	for _, ahead := range []time.Duration{0, 280 * time.Second, -280 * time.Second, 320 * time.Second, -320 * time.Second} {
		must.OK(t, c.setClock(int64(ahead/time.Second)))
		for _, args := range [][]string{{"squeue"}, {"scontrol", "show", "reservations"}, {"scontrol", "update", "NodeName=n1", "Comment=x"}} {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
			text, err := cmd.CombinedOutput()
			if far := ahead.Abs() > 5*time.Minute; (err != nil) != far || far && !strings.Contains(string(text), "Zero Bytes were transmitted or received") {
				t.Errorf("%q while slurmctld's clock is %v ahead: %v: %s", args, ahead, err, text)
			}
		}
	}
}

// TestFreeze checks that a frozen cluster stands still and continues when thawed.
func TestFreeze(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	u := c.Users()[0]
	run(t, c, u, "sbatch", "--parsable", "-N2", "--output=/dev/null", "--wrap=while :; do date +%s%N > tick; sleep 0.05; done")
	ticks := func() string {
		text, _ := os.ReadFile(u.Home + "/tick")
		return string(text)
	}
	eventually(t, "the job ticks", func() bool { return ticks() != "" })
	thaw := c.Freeze()
	before := ticks()
	time.Sleep(300 * time.Millisecond)
	if after := ticks(); after != before {
		t.Errorf("a frozen job has gone on: %q, %q", before, after)
	}
	thaw(1)
	eventually(t, "the job ticks again", func() bool { return ticks() != before })
	run(t, c, Root, "scancel", "--user="+u.Name)
	clean(t, c)
}
