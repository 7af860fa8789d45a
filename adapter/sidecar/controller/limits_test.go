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
	"github.com/evoslurm/evoslurm/slurmctl"
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

// TestLicenses checks that a job whose licence a stock job has is planned for that one's end and holds no nodes while it waits, in
// both drive modes, that it starts once the licence is free and grows in time, and that what brings its nodes takes no licence.
func TestLicenses(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "Licenses=foo:2"},
		func(c *config.Config) { c.PollInterval = 250 * time.Millisecond })
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			stock := l.sbatch(1, "--nodes=1", "--exclusive", "--licenses=foo:1", "--time=5")
			l.eventually("the stock job runs", func() error {
				if r, err := l.record(stock); err != nil || r.State != slurmctl.Running {
					return fmt.Errorf("%s (%v)", r.State, err)
				}
				return nil
			})
			id := l.submitSpec(request.Request{Drive: drive}, "2@1m,4@1m", "--licenses=foo:2")
			l.eventually("the job waits for its licence and holds nothing", func() error { return l.awaitsLicence(id, stock) })
			waits := l.sbatch(1, "--nodes=1", "--licenses=foo:2", "--time=1") // behind the job in the queue, and in Slurm's only one
			l.eventually("Slurm shows why a stock job waits", func() error {
				if r, err := l.record(waits); err != nil || r.Reason != "Licenses" {
					return fmt.Errorf("%s (%v)", r.Reason, err)
				}
				return nil
			})
			l.cancelStock(1, waits)
			for range 12 { // three seconds of polls
				time.Sleep(250 * time.Millisecond)
				if all, err := l.slurm.Reservations(l.ctx()); err != nil || len(all) > 0 {
					t.Fatalf("%d reservations while the licence is in use (%v)", len(all), err)
				}
			}
			l.cancelStock(1, stock)
			l.running(id, 1)
			l.has(l.next(id, 1), 4)
			out, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "-o", "show", "lic")
			if l.must(err); !strings.Contains(out, "Used=2") {
				t.Errorf("licences: %s", out)
			}
			l.end(id)
		})
	}
}

// awaitsLicence reports whether an evolving job waits for the licence of a stock job, planned for that one's end, without holds.
func (l *lab) awaitsLicence(id, stock uint32) error {
	j, err := l.Job(l.ctx(), id)
	if err != nil {
		return err
	}
	all, err := l.slurm.Reservations(l.ctx())
	if err != nil {
		return err
	}
	r, err := l.record(stock)
	if err != nil {
		return err
	}
	if !strings.Contains(j.Reason, "1 of 2 foo are free (Licenses), and it asks for 2") || len(j.Plan) == 0 || j.Plan[0].Start.Before(r.EndTime) || len(all) > 0 {
		return fmt.Errorf("%q, planned %v, with %d reservations", j.Reason, j.Plan, len(all))
	}
	return nil
}
