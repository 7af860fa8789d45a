package submit

import (
	"context"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// reservations is a cluster that lists its reservations; *slurmctl.Client implements it.
type reservations interface {
	Reservations(ctx context.Context) ([]slurmctl.Reservation, error)
}

// checkInside rejects what cannot be planned in a reservation.
func (r submission) checkInside() error {
	o, given := r.options.last("reservation")
	if !given || o.Value == "" || r.options.has("rigid") { // Slurm alone places a rigid job
		return nil
	}
	_, array := r.options.last("array")
	why := ""
	switch {
	case strings.Contains(o.Value, ","):
		why = "an evolving job runs in one reservation: name only that"
	case r.request.Drive.Means().StepsAreJobs:
		why = "the steps of a chain cannot be planned in a reservation yet: leave --drive=chain out"
	case array:
		why = "tasks of an array cannot be planned in a reservation yet: submit one job for each task"
	case r.request.Malleable != nil:
		why = "malleable jobs cannot be planned in a reservation yet: give --profile"
	default:
		return nil
	}
	return fmt.Errorf("%s: %s, or add --rigid for an ordinary job in it", o, why)
}

// inside rejects a job that its reservation can never run. What it does not know is left to sbatch and the sidecar.
func (s site) inside(ctx context.Context, r submission) error {
	o, given := r.options.last("reservation")
	cluster, ok := s.cluster.(reservations)
	if !given || o.Value == "" || r.options.has("rigid") || !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := cluster.Reservations(ctx)
	at := slices.IndexFunc(all, func(one slurmctl.Reservation) bool { return one.Name == o.Value })
	if err != nil || at < 0 {
		return nil
	}
	in := all[at]
	if flaw := in.Unplannable(userName()); flaw != "" {
		return fmt.Errorf("%s: %s; leave the option out, or add --rigid for an ordinary job in it", o, flaw)
	}
	profiles := []planner.Profile{r.request.Profile}
	if m := r.request.Moldable; m != nil {
		profiles = append(profiles, m.Alternatives...)
	}
	for _, p := range profiles {
		if err = insideOf(in, p, time.Now(), r.request.Begin); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", o, err)
}

// insideOf returns why a profile does not fit into a reservation, or nil.
func insideOf(in slurmctl.Reservation, p planner.Profile, now, begin time.Time) error {
	if peak := p.Peak(); peak > len(in.Nodes) {
		return fmt.Errorf("reservation %s has %d nodes, and a step of the profile has %d: give a smaller profile, or ask for a larger reservation", in.Name, len(in.Nodes), peak)
	}
	start := now
	for _, other := range []time.Time{in.Start, begin} {
		if other.After(start) {
			start = other
		}
	}
	if left := in.End.Sub(start); time.Duration(p.Duration())*time.Second > left {
		return fmt.Errorf("reservation %s ends at %s, and the profile takes %s: give a shorter profile, or ask for a later end", in.Name, in.End.Format(time.DateTime), planner.FormatDuration(p.Duration()))
	}
	return nil
}

// userName returns who submits, or "" if the machine does not know.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
