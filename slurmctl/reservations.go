package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reservations returns all reservations, by one scontrol. With --verbose it also prints slurmctld's time (22.05, 24.11),
// which the context's [Meter] gets.
func (c *Client) Reservations(ctx context.Context) ([]Reservation, error) {
	out, err := c.output(ctx, "scontrol", "--verbose", "--all", "--oneliner", "show", "reservation")
	if err != nil {
		return nil, err
	}
	MeterClock(ctx, answeredAt(out))
	return parseReservations(out)
}

// answeredAt returns the time of slurmctld's answer; zero if the output does not begin with it.
func answeredAt(out string) time.Time {
	at, _, _ := strings.Cut(out, ",")
	value, is := strings.CutPrefix(at, "last_update_time=")
	if t, err := parseTime(value); is && err == nil {
		return t
	}
	return time.Time{}
}

// parseReservations reads one reservation per line. Only administrators write reservations. It
// ignores the comment, which comes last.
func parseReservations(out string) ([]Reservation, error) {
	var all []Reservation
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "ReservationName=") {
			continue // "No reservations in the system"
		}
		r, err := parseReservation(line)
		if err != nil {
			return nil, fmt.Errorf("reservation %s: %w", oneLine(line, 60), err)
		}
		all = append(all, r)
	}
	return all, nil
}

func parseReservation(line string) (Reservation, error) {
	var r Reservation
	var err error
	seen := map[string]bool{}
	for _, field := range strings.Fields(line) {
		key, value, ok := strings.Cut(field, "=")
		if !ok || seen[key] {
			continue // the first value of a name is Slurm's own
		}
		seen[key] = true
		switch key {
		case "ReservationName":
			r.Name = value
		case "StartTime":
			r.Start, err = parseTime(value)
		case "EndTime":
			r.End, err = parseTime(value)
		case "Nodes":
			r.Nodes, err = ExpandNodes(value)
		case "Users":
			r.Users = list(value)
		case "Accounts":
			r.Accounts = list(value)
		case "PartitionName":
			r.Partition = text(value)
		case "Flags":
			r.Flags = list(value)
		case "Licenses":
			r.Licenses, _ = ParseLicenses(value) // what only administrators write delays jobs at most
		case "State":
			r.Active = value == "ACTIVE"
		}
		if err != nil {
			return r, err
		}
		if key == "State" {
			break
		}
	}
	if len(r.Users) == 0 && len(r.Accounts) == 1 && r.Accounts[0] == everybodyDenied {
		r.Users, r.Accounts = []string{Nobody}, nil
	}
	return r, nil
}

// ReservationRequest describes a reservation to create.
type ReservationRequest struct {
	Name      string
	Start     time.Time // zero for now
	End       time.Time // to the second, unlike a duration
	Nodes     []string  // these nodes; or
	NodeCount int       // as many nodes as this, chosen by Slurm
	Users     []string  // who may use it; Users or Accounts is required
	Accounts  []string
	Partition string
	Flags     []string // e.g. "FLEX", "IGNORE_JOBS", "PURGE_COMP=00:01:00"
}

// CreateReservation creates a reservation, as root or SlurmUser. It fails with
// ErrReservationExists, ErrReservationOverlap, or ErrNodesBusy (a job's time limit reaches into it;
// the flag IGNORE_JOBS overrides that). 22.05 may silently reduce NodeCount to the free nodes: read
// the reservation back.
func (c *Client) CreateReservation(ctx context.Context, q ReservationRequest) error {
	start := "now"
	if !q.Start.IsZero() {
		start = formatTime(q.Start)
	}
	if len(q.Nodes) > 0 && q.NodeCount > 0 {
		return errors.New("a reservation takes Nodes or NodeCount, not both")
	}
	if q.End.IsZero() || !q.Start.IsZero() && !q.End.After(q.Start) {
		return fmt.Errorf("reservation %s: it must end after its start", oneLine(q.Name, 64))
	}
	return closing(q.Users, q.Accounts, func(denied bool) error {
		a := newSetting("create", "reservation")
		a.add("ReservationName", checkName, q.Name)
		a.raw("StartTime", start)
		a.raw("EndTime", formatTime(q.End))
		if denied {
			a.raw("Accounts", everybodyDenied)
		} else {
			a.access(q.Users, q.Accounts)
		}
		a.reservation(q.Nodes, q.NodeCount, q.Partition, q.Flags)
		return c.setting(ctx, a)
	})
}

// Nobody is the only user of a closed reservation: root submits no jobs, and its association comes
// with Slurm.
const Nobody = "root"

// everybodyDenied replaces Nobody as a value of Accounts=: all accounts are below the account root.
const everybodyDenied = "-root"

// closing runs a command that says who may use a reservation. If associations are enforced
// (AccountingStorageEnforce) and the site has deleted root's, Slurm does not accept root as a user.
// closing then runs the command again and denies access to all accounts (22.05.8). If associations
// are not enforced, a denial would affect only jobs of account root, but root is accepted as a
// user.
func closing(users, accounts []string, run func(denied bool) error) error {
	err := run(false)
	if len(accounts) == 0 && len(users) == 1 && users[0] == Nobody && errors.Is(err, ErrInvalidAccount) {
		return run(true)
	}
	return err
}

// ReservationUpdate describes changes to a reservation; zero values leave it unchanged.
type ReservationUpdate struct {
	Start     time.Time
	StartNow  bool // instead of Start
	End       time.Time
	Nodes     []string
	NodeCount int
	Users     []string // replaces the users
	Accounts  []string
	Partition string
	Flags     []string // added to the existing flags
}

// UpdateReservation changes a reservation, or changes nothing and fails with ErrUnknownReservation,
// ErrReservationOverlap, or ErrNodesBusy. Slurm refuses a start in the past and any start of a
// reservation that has begun (ErrReservationBegun). With StartNow, UpdateReservation then changes
// only the rest.
func (c *Client) UpdateReservation(ctx context.Context, name string, u ReservationUpdate) error {
	err := c.updateReservation(ctx, name, u)
	if u.StartNow && errors.Is(err, ErrReservationBegun) {
		if u.StartNow = false; u.isZero() {
			return nil
		}
		return c.updateReservation(ctx, name, u)
	}
	return err
}

// isZero reports whether there is nothing to change.
func (u *ReservationUpdate) isZero() bool {
	return !u.StartNow && u.Start.IsZero() && u.End.IsZero() && len(u.Nodes)+u.NodeCount+len(u.Users)+len(u.Accounts)+len(u.Flags) == 0 && u.Partition == ""
}

func (c *Client) updateReservation(ctx context.Context, name string, u ReservationUpdate) error {
	a := newSetting("update")
	a.add("ReservationName", checkName, name)
	switch {
	case u.StartNow && !u.Start.IsZero():
		return errors.New("scontrol update: StartNow and Start exclude each other")
	case u.StartNow:
		a.raw("StartTime", "now")
	case !u.Start.IsZero():
		a.raw("StartTime", formatTime(u.Start))
	}
	if !u.End.IsZero() {
		a.raw("EndTime", formatTime(u.End))
	}
	return closing(u.Users, u.Accounts, func(denied bool) error {
		again := &setting{args: slices.Clone(a.args), err: a.err}
		switch {
		case denied:
			again.raw("Users", "")
			again.raw("Accounts", everybodyDenied)
		case len(u.Users) > 0 && len(u.Accounts) == 0:
			again.raw("Accounts", "") // an earlier denial may have closed it
			again.access(u.Users, nil)
		default:
			again.access(u.Users, u.Accounts)
		}
		again.reservation(u.Nodes, u.NodeCount, u.Partition, u.Flags)
		return c.setting(ctx, again)
	})
}

// DeleteReservation deletes a reservation. It fails with ErrReservationInUse while a job uses it,
// and with ErrUnknownReservation once it is gone.
func (c *Client) DeleteReservation(ctx context.Context, name string) error {
	a := newSetting("delete")
	a.add("ReservationName", checkName, name)
	return c.setting(ctx, a)
}

// access adds the users and accounts of a reservation.
func (a *setting) access(users, accounts []string) {
	a.names("Users", checkUserName, users)
	a.names("Accounts", checkWord, accounts)
}

// reservation adds the arguments that requests and updates share.
func (a *setting) reservation(nodes []string, count int, partition string, flags []string) {
	if len(nodes) > 0 {
		a.nodes("Nodes", nodes)
	}
	if count > 0 {
		a.raw("NodeCnt", strconv.Itoa(count))
	}
	if partition != "" {
		a.add("PartitionName", checkWord, partition)
	}
	a.names("Flags", checkFlag, flags)
}
