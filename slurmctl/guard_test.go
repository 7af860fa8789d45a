package slurmctl_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestGuard checks that with contrib/job_submit.lua users can expand their own jobs but no other
// user's, whatever they write.
func TestGuard(t *testing.T) {
	text := must.Read(t, "../contrib/job_submit.lua")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := slurmtest.Start(t, slurmtest.Options{PermitJobExpansion: true})
	owner, other := c.Users()[0], c.Users()[1]
	base, err := c.Run(ctx, owner, "sbatch", "--parsable", "--output=/dev/null", "--nodes=2", "--exclusive", "--wrap=exec sleep 600")
	must.OK(t, err)
	base = strings.TrimSpace(base)
	expand := func(user slurmtest.User, dependency string) (string, error) {
		return c.Run(ctx, user, "salloc", "--no-shell", "--immediate=5", "--nodes=1", "--exclusive", "--job-name="+user.Name, "--dependency="+dependency)
	}
	waitFor(t, ctx, c, base)
	if _, err := expand(other, "expand:"+base); err != nil {
		t.Errorf("the hole that the guard is for is closed in Slurm %s: %v", c.Version(), err)
	}

	must.OK(t, os.WriteFile(c.Dir()+"/job_submit.lua", text, 0o644))
	must.OK(t, c.Reconfigure(ctx, func(o *slurmtest.Options) { o.ExtraConf += "\nJobSubmitPlugins=lua\n" }))
	must.OK(t, c.RestartController(ctx))
	for _, dependency := range []string{"expand:" + base, "EXPAND:" + base, "expand:0" + base, "expand:" + base + ":" + base,
		"afterany:1,expand:" + base, "afterany:1?expand:" + base, "expand:" + base + "_0", "expand:+" + base, "expand: " + base, "expand:999999"} {
		if _, err := expand(other, dependency); err == nil {
			t.Errorf("another user gets --dependency=%q", dependency)
		}
	}
	_, err = expand(other, "expand:"+base)
	if err == nil || !strings.Contains(err.Error(), "is not yours to expand") {
		t.Errorf("the refusal does not say why: %v", err)
	}
	for _, user := range []slurmtest.User{owner, slurmtest.Root} {
		if _, err := expand(user, "expand:"+base); err != nil {
			t.Errorf("%s may not expand it: %v", user.Name, err)
		}
	}
	// the guard blocks nothing else, and no later change
	waiting, err := c.Run(ctx, other, "sbatch", "--parsable", "--hold", "--dependency=afterany:"+base, "--output=/dev/null", "--wrap=true")
	must.OK(t, err)
	waiting = strings.TrimSpace(waiting)
	if _, err := c.Run(ctx, other, "scontrol", "update", "JobId="+waiting, "Dependency=expand:"+base); err == nil {
		t.Error("another user's job is made an expander afterwards")
	}
	if _, err := c.Run(ctx, other, "scontrol", "update", "JobId="+waiting, "Dependency=afterany:"+base); err != nil {
		t.Errorf("a harmless change is refused: %v", err)
	}
}

// waitFor waits until a job runs.
func waitFor(t *testing.T, ctx context.Context, c *slurmtest.Cluster, id string) {
	t.Helper()
	var job slurmctl.JobID
	if _, err := fmt.Sscan(id, &job); err != nil {
		t.Fatal(err)
	}
	for {
		jobs, err := c.Client().JobsByID(ctx, job)
		must.OK(t, err)
		if len(jobs) == 1 && jobs[0].State == slurmctl.Running {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
