package slurmtest

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestControllerCrash(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	job := run(t, c, c.Users()[0], "sbatch", "--parsable", "-N1", "--wrap", "sleep 600")
	state := func() string { return run(t, c, Root, "squeue", "-h", "-o", "%i %T") }
	eventually(t, "the job runs", func() bool { return state() == job+" RUNNING" })
	must.OK(t, c.RestartController(t.Context()))
	if got := state(); got != job+" RUNNING" {
		t.Errorf("after a restart: %q", got)
	}
	must.OK(t, c.KillController(t.Context()))
	if _, err := c.Run(t.Context(), Root, "scontrol", "ping"); err == nil {
		t.Error("a killed controller answers")
	}
	if err := c.KillController(t.Context()); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("a second kill: %v", err)
	}
	must.OK(t, c.StartController(t.Context()))
	if err := c.StartController(t.Context()); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("a second start: %v", err)
	}
	if got := state(); got != job+" RUNNING" {
		t.Errorf("after a crash: %q", got)
	}
	run(t, c, Root, "scancel", job)
	clean(t, c)
}

func TestNodeCrash(t *testing.T) {
	c := Start(t, Options{Nodes: 3})
	u := c.Users()[0]
	// other clusters on this machine may run sleeping jobs of the same user
	own := strconv.Itoa(os.Getpid())
	lost := run(t, c, u, "sbatch", "--parsable", "--no-requeue", "-w", "n2", "--wrap", "sleep 600."+own)
	kept := run(t, c, u, "sbatch", "--parsable", "-w", "n1", "--wrap", "sleep 601."+own)
	sleeps := func() string {
		return run(t, c, Root, "sh", "-c", `ps -eo uid,args | grep -c "^ *`+uid(u)+` sleep 60[01][.]`+own+`$" || true`)
	}
	eventually(t, "both jobs sleep", func() bool { return sleeps() == "2" })
	must.OK(t, c.StopNode(t.Context(), "n2"))
	if n := sleeps(); n != "1" {
		t.Errorf("%s jobs sleep after the stop of one node, want 1", n)
	}
	// Slurm takes about a minute to notice; an administrator can be faster.
	run(t, c, Root, "scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=crash")
	state := func(job string) string { return run(t, c, Root, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T") }
	eventually(t, "the job of the node is lost", func() bool { return state(lost) == "NODE_FAIL" })
	must.OK(t, c.StartNode(t.Context(), "n2"))
	eventually(t, "the node is back", func() bool { return run(t, c, Root, "sinfo", "-h", "-n", "n2", "-o", "%t") == "idle" })
	if got := state(kept); got != "RUNNING" {
		t.Errorf("the job of the other node is %s", got)
	}
	for _, bad := range []string{"n9", "n[1-2]", "", "slurmctld"} {
		if err := c.StopNode(t.Context(), bad); err == nil {
			t.Errorf("node %q can be stopped", bad)
		}
	}
}

func TestStopLeavesNothing(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	ctx, cancel := contextWithTimeout()
	defer cancel()
	must.OK(t, startJobs(ctx, c))
	began := time.Now()
	for range 2 { // the second does nothing
		must.OK(t, c.Stop(t.Context()))
	}
	t.Logf("stopped in %v", time.Since(began))
	checkGone(t, c.Dir())
}

// TestStopHangs checks that a slurmctld that does not end on SIGTERM is killed.
func TestStopHangs(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Nodes: 1})
	text := must.Read(t, c.Dir()+"/state/slurmctld.pid")
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must.OK(t, err)
	must.OK(t, syscall.Kill(pid, syscall.SIGSTOP))
	must.OK(t, c.RestartController(t.Context()))
	run(t, c, Root, "scontrol", "ping")
}

// TestBackup: the second slurmctld acts while the first is away, with the same jobs, and gives way to it.
func TestBackup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a second slurmctld needs root")
	}
	c := Start(t, Options{Nodes: 2, Backup: true})
	job := run(t, c, c.Users()[0], "sbatch", "--parsable", "-N1", "--wrap", "sleep 600")
	state := func() string { return run(t, c, Root, "squeue", "-h", "-o", "%i %T") }
	eventually(t, "the job runs", func() bool { return state() == job+" RUNNING" })
	must.OK(t, c.StopController(t.Context()))
	eventually(t, "the backup has the job", func() bool {
		out, _ := c.Run(t.Context(), Root, "squeue", "-h", "-o", "%i %T")
		return strings.TrimSpace(out) == job+" RUNNING"
	})
	must.OK(t, c.StartController(t.Context()))
	must.OK(t, c.StopBackup(t.Context()))
	if got := state(); got != job+" RUNNING" {
		t.Errorf("back on the first: %q", got)
	}
	run(t, c, Root, "scancel", job)
	clean(t, c)
}
