package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestBatchHost checks a slurmctld that rereads its configuration and then takes a job's first node
// for its batch host, although that node was merged later. The job gives back other nodes, and its
// script survives.
func TestBatchHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 4, Accounting: true, PermitJobExpansion: true})
	l.run("reconfigured after a merge", func(l *lab) {
		record := func(id uint32) slurmctl.Job {
			jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
			l.must(err)
			if len(jobs) != 1 {
				l.t.Fatalf("%d jobs", len(jobs))
			}
			return jobs[0]
		}
		stock := l.sbatch(0, "--nodes=1", "--nodelist=n1", "--exclusive", "--time=1", "--wrap=exec sleep 600")
		l.eventually("n1 is taken", func() error {
			if r := record(stock); r.State != slurmctl.Running {
				return fmt.Errorf("%s", r.State)
			}
			return nil
		})
		id := l.submitSpec(request.Request{Drive: drivemode.Merge}, "2@90s,4@10m,2@5m,1@5m") // else n1 would not be merged
		l.running(id, 1)
		script := record(id).BatchHost
		if script == "n1" {
			l.t.Fatal("n1 was taken, and the job began there")
		}
		l.cancelStock(0, stock)
		l.has(l.next(id, 1), 4)
		l.scontrol("reconfigure")
		l.eventually("slurmctld takes n1 for the script's node", func() error {
			if r := record(id); r.BatchHost != "n1" {
				return fmt.Errorf("%s", r.BatchHost)
			}
			return nil
		})
		if at, err := l.slurm.ScriptNode(l.ctx(), slurmctl.JobID(id)); err != nil || at != script {
			l.t.Errorf("the script's step is on %q (%v), want %s", at, err, script)
		}
		for step := 2; step <= 3; step++ { // the last step was to have one node
			l.has(l.next(id, step), 2)
			if r := record(id); r.State != slurmctl.Running || !slices.Contains(r.NodeList, script) || !slices.Contains(r.NodeList, "n1") {
				l.t.Errorf("step %d: %s on %v, want n1 and %s, which runs the script", step+1, r.State, r.NodeList, script)
			}
		}
		l.end(id)
	})
}
