package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

var sdiagTimePattern = pattern(`(?m)^sdiag output at .*\((\d+)\)$`)

// Clock returns the time of slurmctld's machine, to the second.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	out, err := c.output(ctx, "sdiag")
	if err != nil {
		return time.Time{}, err
	}
	m := sdiagTimePattern().FindStringSubmatch(out)
	if m == nil {
		return time.Time{}, fmt.Errorf("sdiag: no time in %q", oneLine(out, 80))
	}
	seconds, err := strconv.ParseInt(m[1], 10, 64)
	return time.Unix(seconds, 0), err
}

var backfillPattern = pattern(`\sLast cycle when: .*\((\d+)\)\s+Last cycle: (\d+)`)

// Backfill reports on slurmctld's backfill scheduler, which holds for seconds the locks that most
// commands wait for. It returns whether the scheduler is busy, and the earliest time at which its
// last cycle can have ended, by slurmctld's clock; zero if there was no cycle. The cycle really
// ended a second or two later: sdiag prints the start to the second, and omits the time that the
// scheduler slept. The query takes no lock.
func (c *Client) Backfill(ctx context.Context) (busy bool, ended time.Time, err error) {
	out, err := c.output(ctx, "sdiag")
	if err != nil {
		return false, time.Time{}, err
	}
	if m := backfillPattern().FindStringSubmatch(out); m != nil {
		began, err1 := strconv.ParseInt(m[1], 10, 64)
		micros, err2 := strconv.ParseInt(m[2], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return false, time.Time{}, fmt.Errorf("sdiag: %w", err)
		}
		ended = time.Unix(began, 0).Add(time.Duration(micros) * time.Microsecond)
	}
	return strings.Contains(out, "in the middle of backfilling"), ended, nil
}

// Slurmdbd returns an error if slurmdbd or its database does not answer. If sacctmgr is not
// installed, it returns nil. sacctmgr connects, for which it waits for both answers, and asks
// nothing: a query takes 180 ms instead of 10 (22.05). It exits 0 even if it could not connect, so
// if it complains about anything, a query decides.
func (c *Client) Slurmdbd(ctx context.Context) error {
	_, complaint, err := c.run(ctx, command{name: "sacctmgr", args: []string{"--readonly", "exit"}})
	if err == nil && complaint != "" {
		_, err = c.output(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "cluster", "format=Cluster")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoSlurmdbd, err)
	}
	return nil
}

var userNamePattern = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.@-]*$`)

// AdminLevel returns a user's admin level in slurmdbd: "None", "Operator", or "Administrator". A
// user unknown to slurmdbd has "None".
func (c *Client) AdminLevel(ctx context.Context, user string) (string, error) {
	if !userNamePattern().MatchString(user) {
		return "", fmt.Errorf("invalid user name %q", oneLine(user, 40))
	}
	out, err := c.output(ctx, "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "user", "name="+user, "format=AdminLevel")
	if err != nil {
		return "", err
	}
	level, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if level == "" {
		level = "None"
	}
	return level, nil
}
