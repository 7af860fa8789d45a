package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestLeak merges into a job that has just ended, which makes Slurm lose the nodes.
func TestLeak(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	leak := func(l *lab) {
		base := l.sbatch(0, "--nodes=1", "--exclusive")
		l.onNodes(base, 1)
		user := l.user(0).ClientUser()
		k, err := l.slurm.Allocate(l.ctx(), slurmctl.AllocateRequest{User: user, Nodes: 2, Name: "expander", ExpandJob: slurmctl.JobID(base), Exclusive: true})
		l.must(err)
		l.cancel(base)
		l.eventually("the base job has ended", func() error {
			jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(base))
			if err != nil || len(jobs) != 1 || !jobs[0].Ended() {
				return fmt.Errorf("%+v (%v)", jobs, err)
			}
			return nil
		})
		l.scontrol("update", "JobId="+strconv.Itoa(int(k.ID)), "NumNodes=0")
		left, err := l.cluster.Leftovers(l.ctx())
		l.must(err)
		if len(left.Jobs) > 0 || left.AllocatedCPUs == 0 {
			l.t.Fatalf("no nodes are lost: %s", left)
		}
	}
	events := func(l *lab, kind string) (details []string) {
		all, err := l.store.Events(context.Background(), 0, 0, 1000)
		l.must(err)
		for _, e := range all {
			if e.Kind == kind {
				details = append(details, string(e.Detail))
			}
		}
		return details
	}
	leak(l)
	l.eventually("the leak event", func() error {
		if got := events(l, "leak"); len(got) != 1 || !strings.Contains(got[0], "nodes") {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
	if left, err := l.cluster.Leftovers(l.ctx()); err != nil || left.AllocatedCPUs == 0 {
		t.Errorf("without heal_leaks the nodes are free again: %s (%v)", left, err)
	}
	healing := l.cfg
	healing.HealLeaks = true
	l.must(l.Configure(l.ctx(), healing))
	l.clean()
	l.eventually("the healing event", func() error { // once the command is back
		if got := events(l, "leak healed"); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "nodes") }) {
			return fmt.Errorf("events %q", got)
		}
		return nil
	})
}

// TestShrunkNodesServeStock kills stock jobs on nodes that a job gave back. Slurm refuses such nodes until they answer
// (docs/slurm-bugs.md, 5), which takes longer than the test here if the sidecar does not have them answer.
func TestShrunkNodesServeStock(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "SlurmdTimeout=3000"})
	id := l.submit("8@5s,1@20m")
	l.running(id, 1)
	l.has(l.next(id, 1), 1)
	for range 4 { // by chance, a node may answer after a killed job
		stock := l.sbatch(1, "--nodes=7", "--exclusive")
		l.onNodes(stock, 7)
		time.Sleep(3 * time.Second) // the sidecar sees it
		l.cancelStock(1, stock)
	}
	l.end(id)
}
