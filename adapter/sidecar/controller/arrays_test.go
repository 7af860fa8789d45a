package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// task waits until a task of an array has a record of its own that the sidecar has adopted, and returns its ID.
func (l *lab) task(array uint32, number int) (id uint32) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("task %d_%d is adopted", array, number), func() error {
		jobs, err := l.slurm.Jobs(l.ctx())
		if err != nil {
			return err
		}
		var shown []string
		for _, j := range jobs {
			shown = append(shown, j.Display)
			if j.Display == fmt.Sprintf("%d_%d", array, number) {
				id = uint32(j.ID)
				_, err := l.Job(context.Background(), id)
				return err
			}
		}
		return fmt.Errorf("there are %v", shown)
	})
	return id
}

// TestArray has the tasks of arrays evolve, each on its own, and finds them again after a restart.
func TestArray(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	l.run("at most two at once", twoAtOnce)
	l.run("thousands, cancelled at once", thousands)
}

// twoAtOnce has an array of four tasks with %2 evolve.
func twoAtOnce(l *lab) {
	array := l.submit("1@3m,3@1m", "--array=1-4%2", "--job-name=work")
	first, second := l.task(array, 1), l.task(array, 2)
	if job := l.running(first, 1); job.Name != "work" || job.Drive != "companion" {
		l.t.Errorf("%+v", job)
	}
	l.running(second, 1)
	l.has(l.next(first, 1), 3)
	jobs, err := l.slurm.Jobs(l.ctx())
	l.must(err)
	for _, j := range jobs {
		if j.ID == slurmctl.JobID(array) && (j.Display != fmt.Sprintf("%d_[3-4%%2]", array) || j.Name != "work (waiting)" || j.ArrayLimit != 2) {
			l.t.Errorf("the rest is %+v", j)
		}
	}
	l.stop()
	l.must(l.cluster.RestartController(l.ctx()))
	l.start()
	l.running(second, 1)
	l.shows(array, "%d_[3-4%%2] waits for earlier tasks", array)
	l.scontrol("hold", fmt.Sprint(array))
	l.shows(array, "%d_[3-4%%2] JobHeldAdmin", array)
	l.scontrol("release", fmt.Sprint(array))
	l.scontrol("requeue", fmt.Sprintf("%d_2", array))
	l.eventually("task 2 is requeued", func() error {
		if n := len(l.events("requeued", 0)); n != 1 {
			return fmt.Errorf("%d jobs are", n)
		}
		return nil
	})
	l.running(second, 1)
	l.shows(first, "%d_1 ", array)
	l.cancelTask(array, 1)
	l.ended(first)
	third := l.task(array, 3)
	l.cancelTask(array, 2)
	l.ended(second)
	l.running(third, 1)
	last := l.task(array, 4) // 22.05 shows it before, too
	if last != array {
		l.t.Errorf("the last task is job %d, not %d", last, array)
	}
	l.eventually("it has its user's name again", func() error {
		if jobs, err := l.slurm.Glance(l.ctx(), slurmctl.JobID(last)); err != nil || len(jobs) != 1 || jobs[0].Name != "work" {
			return fmt.Errorf("%v %v", jobs, err)
		}
		return nil
	})
	if job := l.running(last, 1); job.Drive != "companion" {
		l.t.Errorf("%+v", job)
	}
	l.has(l.next(last, 1), 3)
	l.running(third, 1)
	l.cancelTask(array, 4)
	l.ended(last)
	l.running(third, 1) // it alone was meant
	l.cancel(array)
	l.ended(third)
	l.stop()
	l.start()
	for number, id := range map[int]uint32{1: first, 2: second, 3: third, 4: last} {
		l.shows(id, "%d_%d ", array, number)
	}
}

// shows waits until a job is shown with a label, and for a reason that begins so.
func (l *lab) shows(id uint32, format string, args ...any) {
	l.t.Helper()
	want := fmt.Sprintf(format, args...)
	l.eventually(want, func() error {
		j, err := l.Job(context.Background(), id)
		if got := j.Label() + " " + j.Reason; err == nil && !strings.HasPrefix(got, want) {
			err = fmt.Errorf("shown as %s", got)
		}
		return err
	})
}

// thousands has the first tasks of a large array evolve.
func thousands(l *lab) {
	array := l.submit("6@3m,8@1m", "--array=0-199998:3", "--job-name=work")
	first := l.task(array, 0)
	if job := l.running(first, 1); job.Drive != "merge" {
		l.t.Errorf("%+v", job)
	}
	l.has(l.next(first, 1), 8)
	l.cancelTask(array, 0)
	l.ended(first)
	l.running(l.task(array, 3), 1)
	last := l.task(array, 93)
	l.eventually("the others wait in one record", func() error {
		jobs, err := l.slurm.Jobs(l.ctx())
		if err == nil && len(jobs) != 34 {
			err = fmt.Errorf("%d records", len(jobs))
		}
		return err
	})
	l.cancel(array)
	l.ended(last)
}

// cancelTask ends one task, as its user.
func (l *lab) cancelTask(array uint32, number int) {
	l.t.Helper()
	_, err := l.cluster.Run(l.ctx(), l.user(0), "scancel", fmt.Sprintf("%d_%d", array, number))
	l.must(err)
}
