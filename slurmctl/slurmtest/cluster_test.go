package slurmtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func lines(s string) int { return strings.Count(s, "\n") }

// run runs a command that must succeed and returns its trimmed output.
func run(t *testing.T, c *Cluster, u User, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := c.Run(ctx, u, name, args...)
	must.OK(t, err)
	return strings.TrimSpace(out)
}

// batch runs a batch job and waits for its end, which sbatch --wait notices late.
func batch(t *testing.T, c *Cluster, u User, args ...string) {
	t.Helper()
	job := run(t, c, u, "sbatch", append([]string{"--parsable"}, args...)...)
	state := func() string { return run(t, c, Root, "squeue", "-h", "-t", "all", "-j", job, "-o", "%T") }
	eventually(t, "job "+job+" ends", func() bool { return state() == "COMPLETED" })
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for !ok() {
		if pause(ctx) != nil {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func clean(t *testing.T, c *Cluster) {
	t.Helper()
	eventually(t, "nothing is left", func() bool {
		left, err := c.Leftovers(t.Context())
		must.OK(t, err)
		return left.None()
	})
}

func TestBothUsersRunJobs(t *testing.T) {
	c := Start(t, Options{})
	users := c.Users()
	if len(users) != 2 || users[0].UID == users[1].UID {
		t.Fatalf("users are %v, want two different ones", users)
	}
	for _, u := range users {
		out := run(t, c, u, "srun", "-N2", "sh", "-c", "echo $(id -u) $PWD $HOME")
		want := fmt.Sprintf("%d %s %s", u.UID, u.Home, u.Home)
		if out != want+"\n"+want {
			t.Errorf("srun as %s prints %q, want twice %q", u.Name, out, want)
		}
		batch(t, c, u, "-N8", "--wrap", "srun -l hostname | sort -u | wc -l > tasks")
		if n := run(t, c, u, "cat", "tasks"); n != "8" {
			t.Errorf("the batch job of %s counts %s tasks, want 8", u.Name, n)
		}
	}
	if out := run(t, c, Root, "id", "-u"); out != "0" {
		t.Errorf("Root has uid %s", out)
	}
	if _, err := c.Run(t.Context(), users[0], "scontrol", "create", "reservation", "StartTime=now", "Duration=1", "NodeCnt=1", "Users=root"); err == nil {
		t.Error("an unprivileged user may create reservations")
	}
	clean(t, c)
}

func TestLeftovers(t *testing.T) {
	c := Start(t, Options{Nodes: 3, CPUs: 2})
	job := run(t, c, c.Users()[0], "sbatch", "--parsable", "-J", "left", "-N2", "--exclusive", "--wrap", "sleep 600")
	run(t, c, Root, "scontrol", "create", "reservation", "ReservationName=r", "StartTime=now+1hour", "Duration=1", "NodeCnt=1", "Users=root")
	want := fmt.Sprintf("1 jobs [%s left RUNNING], 1 reservations [r], 4 CPUs allocated, nodes not idle [n1 allocated n2 allocated]", job)
	eventually(t, want, func() bool {
		left, err := c.Leftovers(t.Context())
		must.OK(t, err)
		return left.String() == want
	})
	run(t, c, Root, "scancel", job)
	run(t, c, Root, "scontrol", "delete", "reservation", "r")
	clean(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.WaitIdle(ctx); err != nil {
		t.Error(err)
	}
}

func TestSideBySide(t *testing.T) {
	a, b := Start(t, Options{Nodes: 2, Accounting: true}), Start(t, Options{Nodes: 3, Accounting: true})
	job := run(t, a, a.Users()[0], "sbatch", "--parsable", "-N2", "--wrap", "sleep 600")
	eventually(t, "the job runs", func() bool { return run(t, a, Root, "squeue", "-h", "-o", "%T") == "RUNNING" })
	if out := run(t, b, Root, "squeue", "-h"); out != "" {
		t.Errorf("the job of one cluster is seen in the other: %s", out)
	}
	run(t, b, b.Users()[0], "srun", "-N3", "true")
	must.OK(t, b.Stop(t.Context()))
	if out := run(t, a, Root, "squeue", "-h", "-o", "%i %T"); out != job+" RUNNING" {
		t.Errorf("after the stop of the other cluster the job is %q", out)
	}
	batch(t, a, a.Users()[1], "-N2", "--wrap", "srun true")
	eventually(t, "sacct has both jobs", func() bool {
		return lines(run(t, a, Root, "sacct", "-a", "-n", "-X", "-A", accountName)+"\n") == 2
	})
}

func TestSlurmdbdDown(t *testing.T) {
	c := Start(t, Options{Nodes: 1, Accounting: true})
	must.OK(t, c.StopSlurmdbd(t.Context()))
	if _, err := c.Run(t.Context(), Root, "sacct", "-a"); err == nil {
		t.Error("sacct works without slurmdbd")
	}
	run(t, c, c.Users()[0], "srun", "true")
	must.OK(t, c.StartSlurmdbd(t.Context()))
	eventually(t, "sacct has the job", func() bool { return run(t, c, Root, "sacct", "-a", "-n", "-X") != "" })
}

// TestTwoResizes needs slurmdbd on 22.05, and permit_job_expansion.
func TestTwoResizes(t *testing.T) {
	c := Start(t, Options{Accounting: true, PermitJobExpansion: true})
	u := c.Users()[0]
	job := run(t, c, u, "sbatch", "--parsable", "-N2", "--exclusive", "--wrap", "sleep 600")
	nodes := func() string { return run(t, c, Root, "squeue", "-h", "-j", job, "-t", "R", "-o", "%D %N") }
	eventually(t, "the job runs", func() bool { return nodes() != "" })
	for _, want := range []string{"4 n[1-4]", "6 n[1-6]"} {
		run(t, c, u, "salloc", "--no-shell", "-J", "expander", "-N2", "--exclusive", "--dependency=expand:"+job)
		expander := run(t, c, Root, "squeue", "-h", "-t", "R", "-n", "expander", "-o", "%i")
		run(t, c, Root, "scontrol", "update", "JobId="+expander, "NumNodes=0")
		if got := nodes(); got != want {
			t.Fatalf("after the merge the job has %q, want %q", got, want)
		}
	}
	run(t, c, Root, "scontrol", "update", "JobId="+job, "NodeList=n1,n5")
	if got, want := nodes(), "2 n[1,5]"; got != want {
		t.Errorf("after the shrink the job has %q, want %q", got, want)
	}
	run(t, c, u, "scancel", job)
	clean(t, c)
}

// TestNoExpansion checks a cluster without PermitJobExpansion.
func TestNoExpansion(t *testing.T) {
	c := Start(t, Options{Nodes: 2})
	u := c.Users()[0]
	job := run(t, c, u, "sbatch", "--parsable", "-N1", "--wrap", "sleep 600")
	eventually(t, "the job runs", func() bool { return run(t, c, Root, "squeue", "-h", "-o", "%T") == "RUNNING" })
	expand := func() error {
		_, err := c.Run(t.Context(), u, "salloc", "--no-shell", "-N1", "--exclusive", "--dependency=expand:"+job)
		return err
	}
	if err := expand(); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Fatalf("an expander without permit_job_expansion: %v", err)
	}
	must.OK(t, c.Reconfigure(t.Context(), func(o *Options) { o.PermitJobExpansion = true }))
	if err := expand(); err != nil {
		t.Errorf("an expander with permit_job_expansion: %v", err)
	}
}

func TestSixtyFourNodes(t *testing.T) {
	c := Start(t, Options{Nodes: 64, CPUs: 16})
	if out := run(t, c, c.Users()[0], "srun", "-N64", "-n128", "sh", "-c", "echo $SLURMD_NODENAME"); lines(out+"\n") != 128 {
		t.Errorf("128 tasks print %d lines", lines(out+"\n"))
	}
	if out := run(t, c, Root, "sinfo", "-h", "-o", "%D %C"); !strings.HasSuffix(out, "/1024") {
		t.Errorf("sinfo counts %q, want 1024 CPUs", out)
	}
}

func BenchmarkBoot(b *testing.B) {
	for name, o := range map[string]Options{
		"8nodes": {}, "8nodes-accounting": {Accounting: true}, "64nodes": {Nodes: 64}, "1000nodes": {Nodes: 1000},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c, err := Boot(b.Context(), o)
				must.OK(b, err)
				must.OK(b, c.Stop(b.Context()))
			}
		})
	}
}
