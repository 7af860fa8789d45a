package adopt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// inReservation returns why a waiting job cannot evolve in the reservation that it asks for, or nil. One that runs has its nodes
// already, and grows outside of it.
func inReservation(c *state.Core, s *state.Snapshot, r *slurmctl.Job, sp request.Request) error {
	if state.OwnReservation(r.Reservation) == "" && withoutHolds(c, r.Reservation) == "" || r.State != slurmctl.Pending {
		return nil
	}
	why := insteadOf(c, s, r, withoutHolds(c, r.Reservation), sp)
	if _, is := r.Task(); why == nil && is {
		why = errors.New("tasks of an array cannot evolve in a reservation yet")
	}
	if why != nil {
		return fmt.Errorf("it asks for reservation %s: %w; submit it without, or by evosbatch --rigid as an ordinary job", withoutHolds(c, r.Reservation), why)
	}
	return nil
}

// insteadOf returns why a job with a request cannot evolve in a reservation of the site, or nil.
func insteadOf(c *state.Core, s *state.Snapshot, of *slurmctl.Job, name string, sp request.Request) error {
	if _, held := state.ParseHoldName(name); held {
		return errors.New("it has the name of a hold")
	}
	if strings.Contains(name, ",") {
		return errors.New("a job evolves in one reservation only")
	}
	r, there := s.Reservations[name]
	switch {
	case !there:
		return errors.New("it is not there any more")
	case sp.Chain != nil || sp.Drive.Means().StepsAreJobs:
		return errors.New("the steps of a chain cannot be planned in a reservation yet")
	case sp.Malleable != nil:
		return errors.New("malleable jobs cannot be planned in a reservation yet")
	case c.Facts.UpdatesNeedAccount:
		return errors.New("Slurm lets the sidecar take no running job out of a hold here")
	}
	if flaw := r.Unplannable(of.User); flaw != "" {
		return errors.New(flaw)
	}
	return nil
}

// ownOf returns the reservation of the site in which a job is to evolve, or "".
func ownOf(c *state.Core, r *slurmctl.Job, sp request.Request) string {
	own := state.OwnReservation(r.Reservation)
	if _, task := r.Task(); own == "" || task || c.Snapshot == nil || insteadOf(c, c.Snapshot, r, own, sp) != nil {
		return ""
	}
	return own
}
