package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestLimits: what limits of accounts, QOS and partitions do to jobs, and what they
// do not do to others.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 14, Accounting: true, PermitJobExpansion: true,
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"},
			{Name: "big", Extra: "DefaultTime=10 MinNodes=3 MaxNodes=6"}},
		ExtraConf: "AccountingStorageEnforce=associations,limits,qos"}, func(c *config.Config) { c.PollInterval = 250 * time.Millisecond })
	logged := logtest.NewLocal(l.log)
	first, second := l.user(0).Name, l.user(1).Name
	l.manage("add", "account", "free")
	l.manage("add", "user", second, "account=free")
	l.manage("modify", "user", second, "set", "DefaultAccount=free")

	// before anything is merged: Slurm counts every merged expander among its user's
	// jobs until slurmctld reads its configuration again
	l.run("a start that a limit keeps back", func(l *lab) {
		l.manage("modify", "user", first, "set", "MaxJobs=1")
		defer l.manage("modify", "user", first, "set", "MaxJobs=-1")
		stock := l.sbatch(0, "--nodes=1", "--exclusive", "--time=10")
		l.runningStock(stock, 1)
		id := l.submit("2@30s")
		l.eventually("the words of the limit", func() error {
			job, err := l.Job(context.Background(), id)
			if err == nil && !strings.Contains(job.Reason, "AssocMaxJobsLimit: user "+first+" in account proj has MaxJobs=1, 1 in use") {
				err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
			}
			return err
		})
		whole := l.submitBy(1, "13@30s") // no hold is wasted
		l.running(whole, 1)
		l.cancelStock(1, whole)
		l.cancel(stock)
		l.running(id, 1)
		l.cancel(id)
		l.ended(id)
	})
	l.run("what can never be is refused, by whatever it was submitted", func(l *lab) {
		l.manage("modify", "user", first, "set", "GrpTRES=node=3")
		defer l.manage("modify", "user", first, "set", "GrpTRES=node=-1")
		for profile, want := range map[string]string{
			"2@30s,5@30s": "user " + first + " in account proj may have 3 in all (GrpTRES=node=3)",
			"2@30s,3@30s": "",
		} {
			id := l.submit(profile)
			l.eventually("the verdict on "+profile, func() error {
				job, err := l.Job(context.Background(), id)
				if err == nil && (want == "") != (job.State == "running") || err == nil && !strings.Contains(job.Reason, want) {
					err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
				}
				return err
			})
			l.cancel(id)
		}
		id := l.submit("3@30s,7@30s", "--partition=big")
		l.verdict(id, "at most 6 (MaxNodes)")
	})
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
		l.cancel(id)
		l.ended(id)
	})
	l.run("a growth that a limit keeps back costs nobody else anything", func(l *lab) {
		l.manage("modify", "account", "proj", "set", "GrpTRES=node=6")
		defer l.manage("modify", "account", "proj", "set", "GrpTRES=node=-1")
		stock := l.sbatch(0, "--nodes=2", "--exclusive", "--time=10")
		limited, other := l.submit("2@5s,5@5m"), l.submitBy(1, "2@5s,5@5m")
		l.running(limited, 1)
		l.running(other, 1)
		l.endStep(limited, 1)
		l.eventually("the words of the limit", func() error {
			job, err := l.Job(context.Background(), limited)
			if err == nil && (job.State != "waiting" || !strings.Contains(job.Reason, "AssocGrpNodeLimit: account proj has GrpTRES=node=6, 4 in use")) {
				err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
			}
			return err
		})
		l.has(l.next(other, 1), 5)
		late := l.submitBy(1, "2@5s,5@5m") // 7 nodes are held or in use, 5 are free
		job := l.running(late, 1)
		if wait := job.Plan[1].Start.Sub(job.Start); wait > 20*time.Second {
			l.t.Errorf("the growth of another account's job is planned %v after its start", wait)
		}
		for _, e := range logged.AllEntries() {
			if strings.Contains(e.Message, "starts nothing on these idle nodes") {
				l.t.Errorf("nodes are suspect because of a limit: %v", e.Data)
			}
		}
		l.cancelStock(1, late)
		l.ended(late)
		l.cancel(stock)
		l.has(l.next(limited, 1), 5) // there is room now
		l.cancel(limited)
		l.cancelStock(1, other)
		l.ended(other)
		l.ended(limited)
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

// endStep ends a step of the job and does not wait for the next one's nodes.
func (l *lab) endStep(id uint32, from int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), 3*time.Second)
	defer cancel()
	_, err := l.Next(ctx, id, api.NextRequest{From: from})
	l.must(err)
}

// runningStock waits until a stock job has its nodes.
func (l *lab) runningStock(id uint32, nodes int) {
	l.t.Helper()
	l.eventually("a stock job runs", func() error {
		if n := l.slurmNodes(id); n != nodes {
			return fmt.Errorf("it has %d nodes", n)
		}
		return nil
	})
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
