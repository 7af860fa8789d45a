package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestPreemption checks that nodes of jobs that Slurm would preempt for the job count as free, as
// for a stock job, but only after nodes that are really free.
func TestPreemption(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, Nodes: 6,
		Partitions: []slurmtest.Partition{
			{Name: "low", Extra: "DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE"},
			{Name: "high", Extra: "DefaultTime=60 PriorityTier=10 PreemptMode=OFF"},
		},
		ExtraConf: "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n",
	})
	running := func(id uint32, state slurmctl.JobState) slurmctl.Job {
		var found slurmctl.Job
		l.eventually(fmt.Sprintf("job %d is %s", id, state), func() error {
			jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(id))
			if err != nil || len(jobs) != 1 {
				return fmt.Errorf("%v %v", jobs, err)
			}
			if found = jobs[0]; found.State != state {
				return fmt.Errorf("it is %s (%s)", found.State, found.Reason)
			}
			return nil
		})
		return found
	}
	var low []uint32
	for range 4 {
		low = append(low, l.sbatch(1, "--partition=low", "--nodes=1", "--exclusive", "--requeue"))
	}
	var taken []string
	for _, id := range low {
		taken = append(taken, running(id, slurmctl.Running).NodeList...)
	}
	equal := l.sbatch(1, "--partition=high", "--nodes=1", "--exclusive")
	kept := running(equal, slurmctl.Running).NodeList

	id := l.submit("1@600s,4@600s,1@600s", "--partition=high")
	if j := l.running(id, 1); slices.Contains(taken, j.NodeList) || slices.Contains(kept, j.NodeList) {
		t.Errorf("it took %s though a node was free: %v and %v have jobs", j.NodeList, taken, kept)
	}
	if a := l.next(id, 1); a.Nodes != 4 { // without preemption there would be 1
		t.Errorf("it grew to %d nodes", a.Nodes)
	}
	ended := 0
	for _, low := range low {
		jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(low))
		l.must(err)
		if len(jobs) == 1 && jobs[0].State != slurmctl.Running {
			ended++
		}
	}
	if ended != 3 { // no more than has to be
		t.Errorf("%d jobs of the lower partition were ended for 3 nodes", ended)
	}
	running(equal, slurmctl.Running)
	for _, j := range append(low, equal, id) {
		l.must(l.slurm.Cancel(l.ctx(), slurmctl.JobID(j)))
	}
}
