package slurmtest

import (
	"os"
	"strconv"
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
