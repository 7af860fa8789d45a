package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// hold waits for the hold of a job's step.
func (l *lab) hold(id uint32, step int) (found slurmctl.Reservation) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("a hold for step %d of job %d", step, id), func() error {
		all, err := l.slurm.Reservations(l.ctx())
		for _, r := range all {
			if strings.HasPrefix(r.Name, fmt.Sprintf("evo_%d_%d_", id, step)) {
				found = r
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("there are %d reservations", len(all)))
	})
	return found
}

// TestIntruders checks that only the growth or start that a hold is for may run in it.
func TestIntruders(t *testing.T) {
	t.Parallel()
	// with associations enforced Slurm reads a reservation's users in another way
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true, ExtraConf: "AccountingStorageEnforce=associations"})
	into := func(l *lab, hold string, args ...string) (string, error) {
		l.t.Helper()
		return l.cluster.Run(l.ctx(), l.user(0), "sbatch", append([]string{"--parsable", "--output=/dev/null", "--chdir=/", "--nodes=1", "--time=1",
			"--reservation=" + hold, "--wrap=exec sleep 600"}, args...)...)
	}
	grows := func(name string, drive drivemode.Mode) {
		l.run(name+": in the hold of a growth", func(l *lab) {
			id := l.submitSpec(request.Request{Drive: drive}, "1@60s,3@60s,4@60s")
			l.running(id, 1)
			for step := 2; step <= 3; step++ {
				hold := l.hold(id, step)
				if out, err := into(l, hold.Name); err == nil || !strings.Contains(err.Error(), "denied") {
					l.t.Errorf("sbatch --reservation=%s: %q, %v", hold.Name, out, err)
				}
			}
			// the sidecar was killed right after it had let the user in
			hold := l.hold(id, 2)
			l.must(l.slurm.UpdateReservation(l.ctx(), hold.Name, slurmctl.ReservationUpdate{Users: []string{l.user(0).Name}}))
			late, err := into(l, hold.Name)
			l.must(err)
			l.eventually("the hold is closed again", func() error {
				if r := l.hold(id, 2); !slices.Equal(r.Users, []string{"root"}) {
					return fmt.Errorf("its users are %v", r.Users)
				}
				return nil
			})
			l.sentAway(late)
			l.cancelAll(late)
			l.has(l.next(id, 1), 3)
			l.has(l.next(id, 2), 4)
			l.end(id)
		})
	}
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		grows(string(drive), drive)
	}
	l.run("in the hold of a start", func(l *lab) {
		id := l.submitSpec(request.Request{Begin: time.Now().Add(15 * time.Second)}, "4@60s,6@60s")
		hold := l.hold(id, 1)
		waiting, err := into(l, hold.Name)
		l.must(err)
		tasks, err := into(l, hold.Name, "--array=1-2")
		l.must(err)
		l.sentAway(waiting)
		l.sentAway(tasks)
		l.eventually("the job says so", func() error {
			job, err := l.Job(l.ctx(), id)
			if err == nil && !strings.Contains(job.Reason, "was sent into nodes held for it") {
				err = fmt.Errorf("the reason is %q", job.Reason)
			}
			return err
		})
		l.cancelAll(waiting)
		l.cancelAll(tasks)
		l.running(id, 1)
		l.end(id)
	})
	l.run("a reservation of the site's that is named as a hold", func(l *lab) {
		const name = "evo_99999_1_1"
		l.must(l.slurm.CreateReservation(l.ctx(), slurmctl.ReservationRequest{Name: name, End: time.Now().Add(10 * time.Minute), NodeCount: 4, Users: []string{l.user(0).Name}}))
		inside, err := into(l, name)
		l.must(err)
		id := l.submit("2@60s,4@60s")
		l.running(id, 1)
		l.has(l.next(id, 1), 4)
		if state := strings.TrimSpace(l.squeue(number(inside), "%T %v")); state != "RUNNING "+name {
			l.t.Errorf("the job in the site's reservation is %s", state)
		}
		l.cancelAll(inside)
		l.end(id)
		l.must(l.slurm.DeleteReservation(l.ctx(), name))
	})
	// there are sites on which root may have no jobs; Slurm then knows no user root
	l.manage("delete", "user", "root")
	grows("root has no association", drivemode.Merge)
}

// sentAway waits until a job asks for no reservation any more.
func (l *lab) sentAway(id string) {
	l.t.Helper()
	l.eventually("job "+id+" is out of the hold", func() error {
		for line := range strings.Lines(l.squeue(number(id), "%v")) {
			if strings.TrimSpace(line) != "(null)" {
				return errors.New(line)
			}
		}
		return nil
	})
}

func (l *lab) cancelAll(id string) {
	l.t.Helper()
	l.cancel(number(id))
}

// number returns a job's id as sbatch --parsable prints it.
func number(id string) (n uint32) {
	fmt.Sscan(strings.TrimSpace(id), &n)
	return n
}
