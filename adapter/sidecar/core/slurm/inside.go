package slurm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A job that its user submits with --reservation runs in it: it starts and grows on the reservation's nodes, within its time.
// Slurm keeps jobs in a reservation off nodes that another one holds, and starts a job in a hold wherever the hold is. So holds
// within the reservation keep the user's other jobs off. Reservations that others may use, too, are refused. Slurm itself checks whether a user may use the reservation: a job asks for it
// when it is submitted, an expander asks for it beside its hold, and whatever leaves its hold returns to it.

// MayOwn returns why a job cannot run in its reservation as that is now, or nil. It does not say when nodes are free.
func MayOwn(c *state.Core, s *state.Snapshot, j *state.Job) error {
	if j.Reservation == "" {
		return nil
	}
	r, there := s.Reservations[j.Reservation]
	if !there || c.Reached(s.Taken, r.End) {
		return fmt.Errorf("reservation %s is not there any more", j.Reservation)
	}
	if flaw := r.Unplannable(j.User); flaw != "" {
		return errors.New(flaw)
	}
	if peak := leastPeak(j); peak > len(r.Nodes) {
		return fmt.Errorf("it needs %d nodes, and reservation %s has %d", peak, r.Name, len(r.Nodes))
	}
	return nil
}

// OutsideText says why a job that fits nowhere does not fit into its reservation, or returns the reason as it is.
func OutsideText(c *state.Core, s *state.Snapshot, j *state.Job, why string) string {
	r, there := s.Reservations[j.Reservation]
	switch {
	case j.Reservation == "":
		return why
	case !there:
		return fmt.Sprintf("reservation %s is not there any more", j.Reservation)
	}
	return fmt.Sprintf("it does not fit into reservation %s, which has %d nodes and ends at %s: %s", r.Name, len(r.Nodes), state.ClockText(c, r.End), why)
}

// Within reports whether a job may have a node during [start, end), in Unix seconds, as far as its own reservation goes.
func Within(s *state.Snapshot, j *state.Job, node string, start, end int64) bool {
	if j.Reservation == "" {
		return true
	}
	r := s.Reservations[j.Reservation]
	return start >= r.Start.Unix() && end <= r.End.Unix() && slices.Contains(r.Nodes, node)
}

// LeftOwn returns in words why a job must not get these nodes now, as far as its own reservation goes, or "".
func LeftOwn(c *state.Core, s *state.Snapshot, j *state.Job, nodes []string) string {
	if j.Reservation == "" || s == nil {
		return ""
	}
	r, there := s.Reservations[j.Reservation]
	if !there || c.Reached(s.Taken, r.End) {
		return fmt.Sprintf("reservation %s is not there any more, and the job grows in it only", j.Reservation)
	}
	if left := msg.Without(nodes, r.Nodes); len(left) > 0 {
		return fmt.Sprintf("reservation %s does not have %s any more, and the job grows in it only", r.Name, slurmctl.CompressNodes(left))
	}
	return ""
}

// inOwn returns the job's record with the reservation of the site in which the job runs, in place of a hold.
func inOwn(j *state.Job) *slurmctl.Job {
	if j.Record.Reservation == j.Reservation {
		return &j.Record
	}
	one := j.Record
	one.Reservation = j.Reservation
	return &one
}

// Shares reports whether others may use the job's own reservation by now: then no nodes are held in it.
func Shares(s *state.Snapshot, j *state.Job) bool {
	return j.Reservation != "" && s != nil && s.Reservations[j.Reservation].IsShared(j.User)
}
