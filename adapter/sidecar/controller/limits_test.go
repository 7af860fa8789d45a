package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestLimits checks a partition that takes no small jobs, and whose jobs coordinators and operators
// see.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 14, Accounting: true, PermitJobExpansion: true,
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"},
			{Name: "big", Extra: "DefaultTime=10 MinNodes=3 MaxNodes=6"}},
		ExtraConf: "AccountingStorageEnforce=associations,limits,qos"}, func(c *config.Config) { c.PollInterval = 250 * time.Millisecond })
	first, second := l.user(0).Name, l.user(1).Name
	l.manage("add", "account", "free")
	l.manage("add", "user", second, "account=free")
	l.manage("modify", "user", second, "set", "DefaultAccount=free")

	l.run("a partition that takes no job as small as the growth", func(l *lab) {
		l.verdict(l.submitSpec(request.Request{Drive: drivemode.Merge}, "3@30s,4@30s", "--partition=big"),
			"drive mode merge cannot work here: partition big takes no expander as small as a growth (MinNodes)")
		id := l.submit("3@5s,4@5s,6@5s,3@5s", "--partition=big")
		if job := l.running(id, 1); job.Drive != "companion" {
			l.t.Errorf("drive mode %s, want companion", job.Drive)
		}
		for step, nodes := range []int{4, 6, 3} {
			l.has(l.next(id, step+1), nodes)
		}
		l.end(id)
	})
	l.run("coordinators and Slurm's operators see more than their own jobs", func(l *lab) {
		l.manage("add", "account", "below", "parent=free")
		l.manage("add", "coordinator", "account=free", "names="+first)
		l.manage("modify", "user", second, "set", "AdminLevel=Operator")
		for uid, want := range map[uint32]string{l.user(0).UID: "free below", l.user(1).UID: "free below proj everything", 65534: ""} {
			sees, got := l.Sees(l.ctx(), uid), []string{}
			for _, account := range []string{"free", "below", "proj"} {
				if sees(account) {
					got = append(got, account)
				}
			}
			if sees("") {
				got = append(got, "everything")
			}
			if strings.Join(got, " ") != want {
				l.t.Errorf("uid %d sees %q, want %q", uid, got, want)
			}
		}
	})
}

// manage runs sacctmgr as root, without questions.
func (l *lab) manage(args ...string) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "sacctmgr", append([]string{"-i"}, args...)...)
	l.must(err)
}

// verdict waits until evosqueue says these words of a job, and cancels it.
func (l *lab) verdict(id uint32, words string) {
	l.t.Helper()
	l.eventually("the verdict on the job", func() error {
		job, err := l.Job(context.Background(), id)
		if err == nil && !strings.Contains(job.Reason, words) {
			err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
		}
		return err
	})
	l.cancel(id)
}
