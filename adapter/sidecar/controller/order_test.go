package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestOrder checks which jobs are planned when and where, given what a site does to its queue.
func TestOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{
		Partitions: []slurmtest.Partition{{Name: "main"}, {Name: "a", Nodes: "n[1-4]"}, {Name: "b", Nodes: "n[3-8]"}, {Name: "c", Extra: "AllowGroups=root"}},
		Accounting: true, PermitJobExpansion: true, PriorityType: "multifactor",
		ExtraConf: "PriorityWeightAge=100000\nPriorityMaxAge=00:10:00\nPriorityCalcPeriod=1"})
	l.run("as if eligible since submission", testAge)
	l.run("before a maintenance", testMaintenance)
	l.run("right before a maintenance", testRightBeforeMaintenance)
	l.run("in the partition that is soonest free", testSeveralPartitions)
}

// testSeveralPartitions checks that the job moves to the partition in which it completes first,
// even if Slurm refuses another one, and grows there.
func testSeveralPartitions(l *lab) {
	busy := l.sbatch(1, "--partition=a", "--nodes=2", "--nodelist=n[1-2]", "--exclusive", "--time=30")
	l.eventually("a busy partition a", func() error {
		if l.slurmNodes(busy) == 0 {
			return errors.New("it does not run")
		}
		return nil
	})
	inB := l.submit("2@10s,4@1m", "--partition=a,b")
	if job := l.running(inB, 1); job.Partition != "b" {
		l.t.Errorf("it runs in partition %s", job.Partition)
	}
	l.has(l.next(inB, 1), 4)
	l.cancelStock(1, busy)
	l.cancel(inB)
	l.ended(inB)
	refused := l.submit("2@1m", "--partition=c,b")
	if job := l.running(refused, 1); job.Partition != "b" {
		l.t.Errorf("it runs in partition %s", job.Partition)
	}
	l.cancel(refused)
	l.ended(refused)
}

// testAge checks that a parked job, which Slurm itself leaves at priority 1, counts as older than a
// stock job submitted after it, also once Slurm has computed that job's age.
func testAge(l *lab) {
	busy := l.sbatch(1, "--nodes=8", "--exclusive", "--time=30")
	older := l.submit("8@5m")
	time.Sleep(8 * time.Second) // longer than from one poll to the next
	younger := l.sbatch(1, "--nodes=8", "--exclusive", "--time=30")
	var shown uint64
	l.eventually("the stock job's age", func() error {
		jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(younger))
		l.must(err)
		if shown = jobs[0].Priority; shown > 1 {
			return nil
		}
		nice := jobs[0].Nice + 1 // Slurm recomputes at once, not in a minute
		return errors.Join(l.slurm.UpdateJob(l.ctx(), slurmctl.JobID(younger), slurmctl.JobUpdate{Nice: &nice}), errors.New("none yet"))
	})
	l.eventually("the older job before the younger one", func() error {
		job, err := l.Job(l.ctx(), older)
		if err == nil && job.Priority <= shown {
			err = fmt.Errorf("its priority is %d, the stock job's %d", job.Priority, shown)
		}
		return err
	})
	l.cancelStock(1, busy)
	l.running(older, 1)
	l.cancelStock(1, younger)
	l.cancel(older)
	l.ended(older)
}

// testMaintenance has a maintenance in two hours and a pending stock job of unlimited time, which
// Slurm starts after it. A job whose own limit ends before must start now, and grow.
func testMaintenance(l *lab) {
	begins := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	var all []string
	for _, n := range l.nodes() {
		all = append(all, n.Name)
	}
	l.must(l.slurm.CreateReservation(l.ctx(), slurmctl.ReservationRequest{Name: "maint", Start: begins, End: begins.Add(time.Hour),
		Nodes: all, Users: []string{"root"}, Flags: []string{"MAINT"}}))
	unlimited := l.sbatch(1, "--nodes=2", "--exclusive", "--time=UNLIMITED")
	long := l.submit("2@10m,3@2h")
	short := l.submit("1@10s,3@15s,1@8s")
	hours := l.submit("1@1h,3@50m")
	l.running(short, 1)
	l.running(hours, 1)
	l.has(l.next(hours, 1), 3)
	job, err := l.Job(l.ctx(), long)
	l.must(err)
	if len(job.Plan) == 0 || job.Plan[0].Start.Before(begins.Add(time.Hour)) {
		l.t.Errorf("the job that ends after the maintenance has begun is planned for %v, in its words: %s", job.Start, job.Reason)
	}
	l.cancelStock(1, unlimited)
	l.cancel(long)
	l.cancel(short)
	l.cancel(hours)
	for _, id := range []uint32{long, short, hours} {
		l.ended(id)
	}
	l.must(l.slurm.DeleteReservation(l.ctx(), "maint"))
}

// testRightBeforeMaintenance has a maintenance of all nodes a second after the job's limit ends.
// The job that brings nodes must not reach into it, in whole minutes: Slurm would not start it.
func testRightBeforeMaintenance(l *lab) {
	var all []string
	for _, n := range l.nodes() {
		all = append(all, n.Name)
	}
	since := l.lastEvent()
	merged := l.submitSpec(request.Request{Drive: drivemode.Merge}, "1@20s,4@10m", "--time=20")
	l.running(merged, 1)
	beside := l.submitSpec(request.Request{Drive: drivemode.Companion}, "1@20s,4@10m", "--time=20")
	grows := l.running(beside, 1).Plan[1].Start
	jobs, err := l.slurm.JobsByID(l.ctx(), slurmctl.JobID(beside))
	l.must(err)
	begins := jobs[0].EndTime.Add(time.Second)
	l.must(l.slurm.CreateReservation(l.ctx(), slurmctl.ReservationRequest{Name: "maint", Start: begins, End: begins.Add(time.Hour),
		Nodes: all, Users: []string{"root"}, Flags: []string{"MAINT"}}))
	time.Sleep(time.Until(grows))
	for _, id := range []uint32{merged, beside} {
		l.has(l.next(id, 1), 4)
		l.cancel(id)
		l.ended(id)
	}
	for _, e := range l.events("failed", since) {
		if strings.Contains(string(e.Detail), "Reserved for maintenance") {
			l.t.Errorf("Slurm did not start what brings nodes: %s", e.Detail)
		}
	}
	l.must(l.slurm.DeleteReservation(l.ctx(), "maint"))
}

// nodes returns the cluster's nodes.
func (l *lab) nodes() []slurmctl.Node {
	l.t.Helper()
	nodes, _, err := l.slurm.Nodes(l.ctx())
	l.must(err)
	return nodes
}
