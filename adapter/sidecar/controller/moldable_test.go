package controller_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// molds submits a moldable job as evosbatch does, with these time limits in minutes.
func (l *lab) molds(alternatives string, minutes ...int64) uint32 {
	l.t.Helper()
	all, err := request.ParseAlternatives(alternatives)
	l.must(err)
	m := &request.Moldable{Alternatives: all}
	for _, limit := range minutes {
		m.Minutes = append(m.Minutes, []int64{limit})
	}
	k := m.Submitted()
	marker, _ := request.Request{Moldable: m, Profile: all[k]}.Marker()
	return l.sbatch(0, "--begin=now+3650days", "--exclusive", "--comment="+marker,
		"--nodes="+strconv.Itoa(all[k][0].Nodes), "--time="+strconv.FormatInt(minutes[k], 10), "--ntasks-per-node=1")
}

// chosen waits until the job is planned with an alternative, from 1.
func (l *lab) chosen(id uint32, choice int) (job api.Job) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("alternative %d is chosen", choice), func() error {
		var err error
		if job, err = l.Job(context.Background(), id); err == nil && (job.Moldable == nil || job.Moldable.Choice != choice || len(job.Plan) == 0) {
			err = fmt.Errorf("%+v, %s %s", job.Moldable, job.State, job.Reason)
		}
		return err
	})
	return job
}

// TestMoldable checks that beside a stock job a moldable one takes few nodes at once, or waits for
// many, whichever completes first; its Slurm job has that alternative's nodes and time limit.
func TestMoldable(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	record := func(l *lab, id uint32) slurmctl.Job {
		jobs, err := l.slurm.Glance(l.ctx(), slurmctl.JobID(id))
		l.must(err)
		return jobs[0]
	}
	l.run("few at once", func(l *lab) {
		stock := l.sbatch(1, "--nodes=5", "--exclusive", "--time=60")
		l.onNodes(stock, 5)
		id := l.molds("8@2m | 3@5m,1@5m | 2@20m", 4, 12, 22)
		job := l.running(id, 1)
		r := record(l, id)
		if job.Nodes != 3 || !job.Moldable.Fixed || job.Moldable.Choice != 2 || job.Profile != "3@5m,1@5m" || r.TimeLimit != 12*time.Minute {
			l.t.Errorf("it runs on %d nodes until %v as %+v", job.Nodes, r.TimeLimit, job.Moldable)
		}
		l.has(l.next(id, 1), 1)
		l.stop() // and knows it again without its database
		l.cfg.Database += "-lost"
		l.start()
		if job = l.running(id, 2); job.Profile != "3@5m,1@5m" || !job.Moldable.Fixed {
			l.t.Errorf("with the database lost it is %s, %+v", job.Profile, job.Moldable)
		}
		l.end(id)
		l.cancelStock(1, stock)
	})
	l.run("many later", func(l *lab) {
		stock := l.sbatch(1, "--nodes=4", "--exclusive", "--time=2")
		l.onNodes(stock, 4)
		id := l.molds("3@60m,4@5m|8@10m", 67, 12)
		job := l.chosen(id, 2)
		if n := l.slurmNodes(id); n != 0 || len(job.Moldable.Alternatives) != 2 || !job.Moldable.Alternatives[0].End.After(job.Moldable.Alternatives[1].End) {
			l.t.Errorf("it runs on %d nodes already: %+v", n, job.Moldable)
		}
		l.cancelStock(1, stock)
		job = l.running(id, 1)
		r := record(l, id)
		if job.Nodes != 8 || r.TimeLimit != 12*time.Minute || !strings.Contains(r.Comment, ";k=2;") {
			l.t.Errorf("it runs on %d nodes until %v, %q", job.Nodes, r.TimeLimit, r.Comment)
		}
		l.end(id)
	})
}
