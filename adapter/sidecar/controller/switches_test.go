package controller_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var switchRequests = flag.Int("switches.requests", 20, "requests of TestSwitches")

const switchesConf = `SwitchName=r0 Nodes=n[1-5]
SwitchName=r1 Nodes=n[6-9]
SwitchName=r2 Nodes=n[10-16]
SwitchName=r3 Nodes=n[17-24]
SwitchName=top Switches=r[0-3]
`

// leafOf returns the switch of a node in switchesConf.
func leafOf(node string) int {
	n := 0
	_, _ = fmt.Sscanf(node, "n%d", &n)
	leaf, _ := slices.BinarySearch([]int{5, 9, 16, 24}, n)
	return leaf
}

// leaves counts nodes by switch.
func leaves(nodes []string) map[int]int {
	count := map[int]int{}
	for _, n := range nodes {
		count[leafOf(n)]++
	}
	return count
}

// TestSwitches: in random states, an evolving job starts on no more switches than sbatch's would, and grows onto the
// fewest more.
func TestSwitches(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 24, CPUs: 1, Accounting: true, PermitJobExpansion: true, ExtraConf: "TopologyPlugin=topology/tree",
		Files: map[string]string{"topology.conf": switchesConf}})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	var fewer, stayed, ours, theirs int
	for range *switchRequests {
		names := make([]string, 24)
		for i, n := range chance.Perm(24) {
			names[i] = fmt.Sprintf("n%d", n+1)
		}
		busy := 1 + chance.IntN(18)
		first := 1 + chance.IntN(23-busy)
		more := 1 + chance.IntN(24-busy-first)
		free := leaves(names[busy:])
		beside := l.sbatch(1, "--exclusive", fmt.Sprintf("--nodes=%d", busy), "--nodelist="+strings.Join(names[:busy], ","))
		l.onNodes(beside, busy)

		stock := l.sbatch(0, "--exclusive", fmt.Sprintf("--nodes=%d", first), "--time=20")
		l.onNodes(stock, first)
		slurms := leaves(l.nodesOf(stock))
		l.endAll(24-busy, stock)

		id := l.submit(fmt.Sprintf("%d@10m,%d@5m", first, first+more))
		l.running(id, 1)
		evos := leaves(l.nodesOf(id))
		var grown []string
		for _, part := range l.next(id, 1).Parts {
			grown = append(grown, part.NodeList...)
		}
		after := leaves(grown)
		what := fmt.Sprintf("%d and %d more nodes, free ones by switch %v: sbatch %v, evosbatch %v and %v", first, more, free, slurms, evos, after)
		if len(evos) > len(slurms) || len(after) != len(evos)+fewestMore(free, evos, more) {
			t.Error(what)
		}
		if len(evos) < len(slurms) {
			fewer++
		}
		if len(after) == len(evos) {
			stayed++
		}
		ours, theirs = ours+len(evos), theirs+len(slurms)
		l.endAll(24, id, beside)
	}
	t.Logf("%d requests: sbatch %d switches, evosbatch %d (fewer in %d); %d growths on the same switches", *switchRequests, theirs, ours, fewer, stayed)
}

// fewestMore returns on how many more switches a job must grow.
func fewestMore(free, has map[int]int, more int) (count int) {
	var rest []int
	for leaf, n := range free {
		if has[leaf] > 0 {
			more -= n - has[leaf]
		} else {
			rest = append(rest, n)
		}
	}
	slices.SortFunc(rest, func(a, b int) int { return cmp.Compare(b, a) })
	for ; more > 0; count++ {
		more -= rest[count]
	}
	return count
}

func (l *lab) nodesOf(id uint32) []string {
	l.t.Helper()
	jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
	l.must(err)
	return jobs[0].NodeList
}

// endAll cancels jobs, and waits until as many nodes are idle, and there is no hold.
func (l *lab) endAll(idle int, ids ...uint32) {
	l.t.Helper()
	for _, id := range ids {
		l.must(l.slurm.Cancel(l.ctx(), slurmctl.JobID(id)))
	}
	l.eventually("idle nodes", func() error {
		nodes, _, err := l.slurm.Nodes(l.ctx())
		l.must(err)
		holds, err := l.slurm.Reservations(l.ctx())
		nodes = slices.DeleteFunc(nodes, func(n slurmctl.Node) bool { return n.State != "idle" })
		if err == nil && (len(nodes) != idle || len(holds) > 0) {
			err = fmt.Errorf("%d nodes are idle, %d holds", len(nodes), len(holds))
		}
		return err
	})
}

// TestFewSwitches: a job with --switches waits for nodes on one switch, or as long as it may. Slurm then starts it at once
// on the nodes of its hold.
func TestFewSwitches(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 24, CPUs: 1, Accounting: true, PermitJobExpansion: true, ExtraConf: "TopologyPlugin=topology/tree",
		Files: map[string]string{"topology.conf": switchesConf}})
	in := l.sbatch(1, "--exclusive", "--nodes=12", "--nodelist=n[1-4,6-9,17-20]")
	l.onNodes(in, 12)
	last := l.sbatch(1, "--exclusive", "--nodes=3", "--nodelist=n[10-12]")
	l.onNodes(last, 3) // 1 node is free on r0, 4 on r2, and 4 on r3

	begun := time.Now()
	hasty := l.submit("6@10m", "--switches=1@0:10")
	l.running(hasty, 1)
	if waited := time.Since(begun); waited < 9*time.Second || len(leaves(l.nodesOf(hasty))) != 2 {
		t.Errorf("it started after %v on %v", waited, l.nodesOf(hasty))
	}
	l.endAll(9, hasty)

	waits := l.submit("5@10m,7@5m", "--switches=1@4:00")
	free := l.submit("3@10m", "--switches=1@4:00")
	l.running(free, 1)
	if len(leaves(l.nodesOf(free))) != 1 {
		t.Errorf("%v", l.nodesOf(free))
	}
	j, err := l.record(waits)
	if l.must(err); j.State != slurmctl.Pending {
		t.Errorf("it is %s on %v", j.State, j.NodeList)
	}
	l.must(l.slurm.Cancel(l.ctx(), slurmctl.JobID(free), slurmctl.JobID(last)))
	l.running(waits, 1)
	if on := leaves(l.nodesOf(waits)); len(on) != 1 || on[2] != 5 {
		t.Errorf("it starts on %v", l.nodesOf(waits))
	}
	l.next(waits, 1)
	if on := leaves(l.nodesOf(waits)); len(on) != 1 {
		t.Errorf("it grows to %v", l.nodesOf(waits))
	}
}

// TestNear checks that a job with --prefer-near waits for a switch that becomes free within prefer_wait, says so, and starts
// there as soon as it is. One with --prefer-waste then waits for the nodes of its third step, one with --prefer-start does not.
func TestNear(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Nodes: 24, CPUs: 1, Accounting: true, PermitJobExpansion: true, ExtraConf: "TopologyPlugin=topology/tree",
		Files: map[string]string{"topology.conf": switchesConf}})
	in := l.sbatch(1, "--exclusive", "--nodes=16", "--nodelist=n[6-15,17-22]", "--time=60")
	l.onNodes(in, 16)
	last := l.sbatch(1, "--exclusive", "--nodes=2", "--nodelist=n[1-2]", "--time=5")
	l.onNodes(last, 2) // 3 nodes are free on r0, 1 on r2, and 2 on r3

	near := l.submitSpec(request.Request{Aim: planner.AimNear}, "5@6m,3@5m")
	l.eventually("it waits for the switch", func() error {
		j, err := l.Job(l.ctx(), near)
		if err == nil && (j.State != "queued" || !strings.Contains(j.Reason, "--prefer-near takes 2 switches in all steps together, not ")) {
			err = fmt.Errorf("it is %s: %s", j.State, j.Reason)
		}
		return err
	})
	l.must(l.slurm.Cancel(l.ctx(), slurmctl.JobID(last)))
	l.running(near, 1)
	if on := leaves(l.nodesOf(near)); len(on) != 1 || on[0] != 5 {
		t.Errorf("it starts on %v", l.nodesOf(near))
	}

	// 3 nodes are free now, 5 after the first step of near: so a start now keeps nodes for longer than the second step lasts. The
	// first step of a plan is never kept longer, so two steps would not do.
	waste := l.submitSpec(request.Request{Aim: planner.AimWaste, ExpandLimit: 20}, "1@1m,2@1m,4@2m")
	l.eventually("it waits until it wastes less", func() error {
		j, err := l.Job(l.ctx(), waste)
		if err == nil && (j.State != "queued" || !strings.Contains(j.Reason, "--prefer-waste keeps ")) {
			err = fmt.Errorf("it is %s: %s", j.State, j.Reason)
		}
		return err
	})
	l.running(l.submitSpec(request.Request{Aim: planner.AimStart, ExpandLimit: 20}, "1@1m,2@1m,4@2m"), 1)
	if j, err := l.Job(l.ctx(), waste); err != nil || j.State != "queued" {
		t.Errorf("%+v, %v", j, err)
	}
}
