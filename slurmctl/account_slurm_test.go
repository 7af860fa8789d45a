package slurmctl_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestWantsAccount checks when a refused update of a running job means that the site wants
// Account=: only if the site also refuses an update that changes nothing, and not if slurmctld does
// not answer that one.
func TestWantsAccount(t *testing.T) {
	f := start(t, slurmtest.Options{Accounting: true})
	id := f.submit("sleep 300", "--time=5")
	f.running(id)
	for answer, want := range map[string]bool{
		`exec "$real" "$@"`: false,
		"echo 'slurm_update error: Unspecified error' >&2; exit 1":                                    true,
		"echo 'slurm_update error: Invalid account or account/partition combination' >&2; exit 1":     true,
		"echo 'slurm_update error: Invalid job id specified' >&2; exit 1":                             true, // a plugin may say anything
		"echo 'slurm_update error: Unable to contact slurm controller (connect failure)' >&2; exit 1": false,
		"echo 'slurm_update error: Job has already finished' >&2; exit 1":                             false, // it is preempted
	} {
		dir := f.TempDir()
		squeue, err := exec.LookPath("squeue")
		f.must(err)
		scontrol, err := exec.LookPath("scontrol")
		f.must(err)
		f.must(os.Symlink(squeue, filepath.Join(dir, "squeue")))
		f.must(os.WriteFile(filepath.Join(dir, "scontrol"), fmt.Appendf(nil, `#!/bin/sh
real=%s
case "$*" in
*Account=*) echo 'slurm_update error: Job is no longer pending execution' >&2; exit 1;;
*EndTime=*) echo 'slurm_update error: Unspecified error' >&2; exit 1;;
*TimeLimit=*) %s;;
esac
exec "$real" "$@"
`, scontrol, answer), 0o755))
		c := &slurmctl.Client{Dir: dir, Env: f.Env}
		err = c.UpdateJob(f.ctx, id, slurmctl.JobUpdate{EndTime: time.Now().Add(4 * time.Minute)})
		f.is(answer, err, slurmctl.ErrUnspecified)
		if got := c.WantsAccount(); got != want {
			t.Errorf("%s: it wants Account= %v, want %v", answer, got, want)
		}
	}
}

// TestUpdateOfPreempted: Slurm lets a job that it preempts be changed no more, although the job runs until its grace is over. That
// must not look like a site that wants Account= in every update, where no running job could be changed.
func TestUpdateOfPreempted(t *testing.T) {
	f := start(t, slurmtest.Options{Accounting: true, Nodes: 1, Partitions: []slurmtest.Partition{{Name: "low", Default: true, Extra: "PriorityTier=1 PreemptMode=CANCEL GraceTime=600"},
		{Name: "high", Extra: "PriorityTier=10 PreemptMode=OFF"}}, ExtraConf: "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"})
	id := f.submit("trap '' TERM; sleep 600", "--exclusive", "--time=30")
	f.running(id)
	urgent := f.submit("sleep 1", "--exclusive", "--partition=high")
	f.wait(id, "preempted", func(slurmctl.Job) bool {
		out, err := f.cluster.Run(f.ctx, slurmtest.Root, "scontrol", "--oneliner", "show", "job", fmt.Sprint(id))
		f.must(err)
		return strings.Contains(out, " PreemptTime=2")
	})
	c := &slurmctl.Client{Env: f.Env}
	f.is("update", c.UpdateJob(f.ctx, id, slurmctl.JobUpdate{TimeLimit: time.Hour}), slurmctl.ErrAlreadyDone)
	if j := f.job(id); j.State != slurmctl.Running {
		t.Errorf("it is %s", j.State)
	}
	if c.WantsAccount() {
		t.Error("the site seems to want Account= in every update")
	}
	f.must(f.Cancel(f.ctx, id, urgent))
}
