package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reservations gives all reservations, by one scontrol.
func (c *Client) Reservations(ctx context.Context) ([]Reservation, error) {
	out, err := c.output(ctx, "scontrol", "--all", "--oneliner", "show", "reservation")
	if err != nil {
		return nil, err
	}
	return parseReservations(out)
}

// parseReservations reads one reservation per line. Only administrators write
// what is in them; of a comment, which comes last, nothing is read.
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
			continue // the first of a name is Slurm's own
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
	return r, nil
}

// ReservationRequest is a reservation to be made.
type ReservationRequest struct {
	Name      string
	Start     time.Time // zero: now
	End       time.Time // to the second, unlike a duration
	Nodes     []string  // these; or
	NodeCount int       // as many as this, of Slurm's choice
	Users     []string  // who may use it; Users or Accounts must be given
	Accounts  []string
	Partition string
	Flags     []string // e.g. "FLEX", "IGNORE_JOBS", "PURGE_COMP=00:01:00"
}

// CreateReservation makes a reservation. Root and SlurmUser may. It fails with
// ErrReservationExists, ErrReservationOverlap or ErrNodesBusy (a job's time
// limit reaches into it; the flag IGNORE_JOBS overrides that). 22.05 may clip
// NodeCount to what is free without a word: read the reservation back.
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
	a := newSetting("create", "reservation")
	a.add("ReservationName", checkName, q.Name)
	a.raw("StartTime", start)
	a.raw("EndTime", formatTime(q.End))
	a.reservation(q.Nodes, q.NodeCount, q.Users, q.Accounts, q.Partition, q.Flags)
	return c.setting(ctx, a)
}

// ReservationUpdate is what to change of a reservation; what is zero stays.
type ReservationUpdate struct {
	Start     time.Time
	StartNow  bool // instead of Start
	End       time.Time
	Nodes     []string
	NodeCount int
	Users     []string // instead of those of before
	Accounts  []string
	Partition string
	Flags     []string // added to those of before
}

// UpdateReservation changes a reservation, or fails with ErrUnknownReservation,
// ErrReservationOverlap or ErrNodesBusy and changes nothing. A start in the past
// is refused by Slurm.
func (c *Client) UpdateReservation(ctx context.Context, name string, u ReservationUpdate) error {
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
	a.reservation(u.Nodes, u.NodeCount, u.Users, u.Accounts, u.Partition, u.Flags)
	return c.setting(ctx, a)
}

// DeleteReservation removes a reservation. It fails with ErrReservationInUse
// while a job is attached to it and with ErrUnknownReservation once it is gone.
func (c *Client) DeleteReservation(ctx context.Context, name string) error {
	a := newSetting("delete")
	a.add("ReservationName", checkName, name)
	return c.setting(ctx, a)
}

// reservation adds what a request and an update have in common.
func (a *setting) reservation(nodes []string, count int, users, accounts []string, partition string, flags []string) {
	if len(nodes) > 0 {
		a.nodes("Nodes", nodes)
	}
	if count > 0 {
		a.raw("NodeCnt", strconv.Itoa(count))
	}
	a.names("Users", checkUserName, users)
	a.names("Accounts", checkWord, accounts)
	if partition != "" {
		a.add("PartitionName", checkWord, partition)
	}
	a.names("Flags", checkFlag, flags)
}
