package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestOwnReservation checks that a job starts and grows in the reservation that its user asks for, on nodes that a stock job in it
// waits for; and that it does not start there while others may use the reservation.
func TestOwnReservation(t *testing.T) {
	t.Parallel()
	l := newLab(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true})
	reserve := func() {
		l.scontrol("create", "reservation", "ReservationName=course", "StartTime=now", "Duration=60", "Nodes=n[5-8]", "Users="+l.user(0).Name)
	}
	for _, drive := range []drivemode.Mode{drivemode.Merge, drivemode.Companion} {
		l.run(string(drive), func(l *lab) {
			reserve()
			id := l.submitSpec(request.Request{Drive: drive}, "1@10s,3@5s", "--reservation=course")
			l.running(id, 1)
			l.eventually("the hold that it started in is given up", func() error { // Slurm refuses what needs more nodes than are left
				left, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "show", "reservation", "--oneliner")
				if err == nil && strings.Contains(left, fmt.Sprintf("ReservationName=evo_%d_1_", id)) {
					err = errors.New(left)
				}
				return err
			})
			stock := l.sbatch(0, "--exclusive", "--nodes=2", "--reservation=course", "--time=5")
			a := l.next(id, 1)
			l.has(a, 3)
			for _, p := range a.Parts {
				if slices.ContainsFunc(p.NodeList, func(n string) bool { return n < "n5" }) {
					l.t.Errorf("part %d has %v, want nodes of the reservation", p.Job, p.NodeList)
				}
				if in := strings.TrimSpace(l.squeue(p.Job, "%v")); in != "course" {
					l.t.Errorf("part %d is in reservation %q", p.Job, in)
				}
			}
			l.end(id)
			l.onNodes(stock, 2)
			l.cancelStock(0, stock)
			l.eventually("the reservation is deleted", func() error {
				_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "delete", "ReservationName=course")
				return err
			})
		})
	}
	l.run("denied", func(l *lab) {
		reserve()
		stock := l.sbatch(0, "--exclusive", "--nodes=4", "--reservation=course", "--time=5")
		l.onNodes(stock, 4)
		id := l.submitSpec(request.Request{}, "1@5s,2@5s", "--reservation=course")
		l.planned(id)
		_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "update", "ReservationName=course", "Users="+l.user(1).Name)
		l.cancelStock(0, stock)
		if err == nil {
			l.eventually("the job is refused", func() error {
				job, err := l.Job(l.ctx(), id)
				if err == nil && (job.State != "queued" || !strings.Contains(job.Reason, "is not for user "+l.user(0).Name+" alone")) {
					err = fmt.Errorf("it is %s: %s", job.State, job.Reason)
				}
				return err
			})
			if st := strings.TrimSpace(l.squeue(id, "%T")); st != "PENDING" {
				l.t.Errorf("it is %s", st)
			}
			l.scontrol("update", "ReservationName=course", "Users="+l.user(0).Name)
		} else if !strings.Contains(err.Error(), "rejected because of JobId=") { // newer Slurm, while a job of the user runs in it
			l.t.Error(err)
		}
		l.running(id, 1)
		l.has(l.next(id, 1), 2)
		l.end(id)
		l.eventually("the reservation is deleted", func() error {
			_, err := l.cluster.Run(l.ctx(), slurmtest.Root, "scontrol", "delete", "ReservationName=course")
			return err
		})
	})
}
