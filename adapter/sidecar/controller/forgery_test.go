package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestForgery checks that another user's comments and names, whether made up or copied from a job,
// have no effect on that job.
func TestForgery(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			victim := l.submitSpec(request.Request{Drive: drive}, "1@60s,3@60s,2@60s")
			l.running(victim, 1)
			marker := strings.TrimSpace(l.squeue(victim, "%k"))
			profile, err := planner.ParseProfile("1@60s,2@60s")
			l.must(err)
			link, ok := request.Request{Profile: profile, Drive: drivemode.Chain, Chain: &request.ChainLink{Step: 2, First: victim}}.Marker()
			if !ok {
				l.t.Fatal("no marker")
			}
			copied := l.sbatch(1, "--comment="+marker, "--begin=now+3650days", "--exclusive", "--nodes=1", "--time=10")
			var forged []uint32
			for _, args := range [][]string{
				{"--comment=" + link, "--begin=now+3650days", "--nodes=2"},                                                        // a step of the victim's
				{"--comment=evox:v1", fmt.Sprintf("--job-name=evo_%d_2_1", victim), "--nodes=1", "--exclusive"},                   // an expander of it
				{"--comment=evox:v1", fmt.Sprintf("--job-name=evo_%d_2_9223372036854775807", victim), "--nodes=1", "--exclusive"}, // after which none can be named
				{"--comment=evox:v1", fmt.Sprintf("--job-name=evo_%d_2_999999999", victim), "--nodes=1", "--exclusive", "--hold"}, // nearly
				{"--comment=evo:v1;p=1@1m;d=merge;n=n[1-8];c=;;\n", fmt.Sprintf("--job-name=%d", victim), "--begin=now+3650days"}, // no marker at all
			} {
				forged = append(forged, l.sbatch(1, append(args, "--time=10")...))
			}
			l.eventually("the copy is a job of the other's own", func() error {
				job, err := l.Job(l.ctx(), copied)
				if err == nil && (job.UID != l.user(1).UID || job.State != "running") {
					err = fmt.Errorf("%+v", job)
				}
				return err
			})
			time.Sleep(2 * time.Second) // some cycles
			if job := l.running(victim, 1); job.Nodes != 1 {
				l.t.Errorf("the victim has %d nodes: %s", job.Nodes, job.NodeList)
			}
			l.has(l.next(victim, 1), 3)
			l.has(l.next(victim, 2), 2)
			if job := l.running(victim, 3); job.User != l.user(0).Name || job.Steps != 3 {
				l.t.Errorf("the victim is %+v", job)
			}
			for _, id := range forged {
				if owner, err := l.Owner(l.ctx(), id); err == nil && owner != l.user(1).UID {
					l.t.Errorf("job %d is taken for one of uid %d", id, owner)
				}
			}
			l.end(victim)
			for _, id := range append(forged, copied) {
				l.slurm.Cancel(l.ctx(), slurmctl.JobID(id)) // some have been cancelled as leftovers of the victim
			}
		})
	}
}

// squeue returns a field of a job.
func (l *lab) squeue(id uint32, format string) string {
	l.t.Helper()
	out, err := l.cluster.Run(l.ctx(), slurmtest.Root, "squeue", "--noheader", "--jobs="+fmt.Sprint(id), "--format="+format)
	l.must(err)
	return out
}
