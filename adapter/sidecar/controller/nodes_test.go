package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestPrefer checks that a job gets the nodes that it prefers in all steps, other nodes if these are down, and that nothing ends
// while its partition is down.
func TestPrefer(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		NodeExtra:  map[string]string{"n[1-4]": "Feature=slow", "n[5-8]": "Feature=fast"},
		Partitions: []slurmtest.Partition{{Name: "main", Default: true, Extra: "DefaultTime=10"}, {Name: "other", Extra: "DefaultTime=10"}}})
	grows := func(l *lab, drive drivemode.Mode, args ...string) string {
		id := l.submitSpec(request.Request{Drive: drive, Prefer: "fast"}, "1@5s,3@5s", append(args, "--prefer=")...)
		l.running(id, 1)
		a := l.next(id, 1)
		l.has(a, 3)
		var nodes []string
		for _, p := range a.Parts {
			nodes = append(nodes, p.NodeList...)
		}
		l.end(id)
		return slurmctl.CompressNodes(nodes)
	}
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			if got := grows(l, drive); got != "n[5-7]" {
				l.t.Errorf("it ran on %s, want n[5-7]", got)
			}
		})
	}
	l.run("its nodes are down", func(l *lab) {
		l.scontrol("update", "NodeName=n[5-8]", "State=DOWN", "Reason=test")
		if got := grows(l, drivemode.Companion); got != "n[1-3]" {
			l.t.Errorf("it ran on %s, want n[1-3]", got)
		}
		l.scontrol("update", "NodeName=n[5-8]", "State=RESUME")
	})
	for _, partition := range []string{"other", "other,main"} {
		l.run("down: "+partition, func(l *lab) {
			l.scontrol("update", "PartitionName=other", "State=DOWN")
			id := l.submitSpec(request.Request{Prefer: "fast"}, "1@5s,3@5s", "--prefer=", "--partition="+partition)
			if partition == "other" {
				l.eventually("the job waits", func() error {
					job, err := l.Job(l.ctx(), id)
					if err == nil && !strings.Contains(job.Reason, "partition other is not up") {
						err = fmt.Errorf("its reason is %q", job.Reason)
					}
					return err
				})
				l.scontrol("update", "PartitionName=other", "State=UP")
			}
			l.running(id, 1)
			if nodes := l.nodesOf(id); len(nodes) != 1 || nodes[0] < "n5" {
				l.t.Errorf("it runs on %v, want one of n[5-8]", nodes)
			}
			l.scontrol("update", "PartitionName=other", "State=DOWN")
			if partition == "other" {
				if got, err := l.Job(l.ctx(), id); err != nil || got.State != "running" {
					l.t.Errorf("its partition went down: it is %s, %v", got.State, err)
				}
			}
			l.scontrol("update", "PartitionName=other", "State=UP")
			l.has(l.next(id, 1), 3)
			l.end(id)
		})
	}
}

// TestFailedNodes checks that a job learns which nodes failed: a job that goes on without one, a job whose companion Slurm ends with
// all of its nodes, and a job that Slurm requeues. The answer to the same call has the loss again, also from another sidecar, and no later
// answer has it.
func TestFailedNodes(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	fails := func(l *lab, id uint32, node string, want api.Allocation) {
		l.t.Helper()
		l.must(l.cluster.StopNode(l.ctx(), node))
		l.scontrol("update", "NodeName="+node, "State=DOWN", "Reason=test")
		l.eventually("the loss of "+node, func() error {
			a, err := l.Allocation(l.ctx(), id)
			if err == nil && (!slices.Equal(a.Lost, want.Lost) || a.Restarts != want.Restarts) {
				err = fmt.Errorf("lost %v, restarted %d times", a.Lost, a.Restarts)
			}
			return err
		})
	}
	answers := func(l *lab, a api.Allocation, lost []string, restarts int) {
		l.t.Helper()
		if !slices.Equal(a.Lost, lost) || a.Restarts != restarts {
			l.t.Errorf("step %d: lost %v, restarted %d times, want %v and %d", a.Step, a.Lost, a.Restarts, lost, restarts)
		}
	}
	back := func(l *lab, id uint32, node string) {
		l.t.Helper()
		l.must(l.cluster.StartNode(l.ctx(), node))
		l.eventually(node+" back", func() error { // slurmd registers, and slurmctld has it serve again
			nodes, _, err := l.slurm.Nodes(l.ctx())
			for _, n := range nodes {
				if n.Name == node && n.Failed() {
					return fmt.Errorf("it is %s%s", n.State, n.Flags)
				}
			}
			return err
		})
		l.end(id)
	}
	l.run("merge", func(l *lab) {
		id := l.submitSpec(request.Request{Drive: drivemode.Merge}, "3@5s,1@5s,1@5s", "--no-kill")
		l.running(id, 1)
		lost := l.nodesOf(id)[2:]
		fails(l, id, lost[0], api.Allocation{Lost: lost})
		l.stop()
		l.start()
		answers(l, l.next(id, 1), lost, 0)
		answers(l, l.next(id, 1), lost, 0) // the same call again
		answers(l, l.next(id, 2), nil, 0)
		back(l, id, lost[0])
	})
	l.run("companion", func(l *lab) {
		id := l.submitSpec(request.Request{Drive: drivemode.Companion}, "1@5s,3@10m,1@5s")
		l.running(id, 1)
		a := l.next(id, 1)
		lost := a.Parts[1].NodeList
		fails(l, id, lost[1], api.Allocation{Lost: lost})
		answers(l, l.next(id, 2), lost, 0)
		back(l, id, lost[1])
	})
	l.run("requeued", func(l *lab) {
		id := l.submit("2@5s,1@5s", "--requeue")
		l.running(id, 1)
		lost := l.nodesOf(id)[1:]
		fails(l, id, lost[0], api.Allocation{Lost: lost, Restarts: 1})
		answers(l, l.next(id, 1), lost, 1)
		answers(l, l.next(id, 1), lost, 1)
		back(l, id, lost[0])
	})
}

// TestRacks checks that a job with alternatives in brackets starts where its growths fit too, and grows there by
// every drive mode, although nodes of the other alternative are free, too.
func TestRacks(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true,
		NodeExtra: map[string]string{"n[1-4]": "Feature=rack1,all", "n[5-8]": "Feature=rack2,all"}})
	for _, c := range []struct {
		drive      drivemode.Mode
		constraint string
	}{
		{drivemode.Merge, "[rack1|rack2]"}, {drivemode.Merge, "all&[rack1|rack2]"},
		{drivemode.Companion, "[rack1|rack2]&(rack1|rack2)"}, {drivemode.Chain, "[rack1|rack2]"},
	} {
		l.run(string(c.drive)+" "+c.constraint, func(l *lab) {
			busy := l.sbatch(1, "--exclusive", "--nodelist=n2,n3")
			l.onNodes(busy, 2)
			ids, nodes := []uint32{0}, []string(nil)
			if c.drive == drivemode.Chain {
				ids = l.submitChain("1@5s,4@20s", "--constraint="+c.constraint, "sleep 1", "sleep 60")
				l.running(ids[0], 2)
				nodes = l.nodesOf(ids[1])
			} else {
				ids[0] = l.submitSpec(request.Request{Drive: c.drive}, "1@5s,4@5s", "--constraint="+c.constraint)
				l.running(ids[0], 1)
				a := l.next(ids[0], 1)
				l.has(a, 4)
				for _, p := range a.Parts {
					nodes = append(nodes, p.NodeList...)
				}
			}
			if got := slurmctl.CompressNodes(nodes); got != "n[5-8]" {
				l.t.Errorf("it grew onto %s, want n[5-8]", got)
			}
			l.cancelStock(1, busy)
			for _, id := range ids {
				l.cancel(id)
			}
			l.ended(ids[0])
		})
	}
}
