package slurmctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// RateLimit bounds how many requests slurmctld answers to a user (rl_enable, since 23.02). It refuses those beyond, and
// Slurm's commands then wait and ask again, without a message. Root and SlurmUser are exempt, operators are not.
//
// Source: src/slurmctld/rate_limit.c.
type RateLimit struct {
	Bucket int           // requests at once
	Refill int           // requests that come back in each period
	Period time.Duration // whole seconds
}

// RateLimit returns the limit that the configuration sets, and whether it sets one.
func (c Config) RateLimit() (RateLimit, bool) {
	l, on := RateLimit{30, 2, time.Second}, false
	for _, p := range c.List("SlurmctldParameters") {
		name, value, _ := strings.Cut(p, "=")
		n, err := strconv.ParseUint(value, 10, 31)
		valid := err == nil && n > 0
		switch strings.ToLower(name) {
		case "rl_enable":
			on = true
		case "rl_bucket_size":
			if valid {
				l.Bucket = int(n)
			}
		case "rl_refill_rate":
			if valid {
				l.Refill = int(n)
			}
		case "rl_refill_period":
			if valid {
				l.Period = time.Duration(n) * time.Second
			}
		}
	}
	return l, on
}

// requestsOfCommand is how many requests a command makes: 100 calls of squeue took 86 to 101 s with the limit's defaults
// (24.11.5), which is what 200 requests take.
const requestsOfCommand = 2

// Time returns how long it takes until the requests of some commands have come back.
func (l RateLimit) Time(commands int) time.Duration {
	return time.Duration(float64(commands*requestsOfCommand) / float64(l.Refill) * float64(l.Period))
}

// Limits reports whether the limit holds for a user.
func (c Config) Limits(user string) bool {
	_, on := c.RateLimit()
	slurmUser, _, err := c.SlurmUser()
	return on && user != "root" && (err != nil || user != slurmUser)
}

// Federation returns the name of the federation that the cluster is in, or "" for none, by one scontrol. Only a cluster
// with slurmdbd can be in one.
func (c *Client) Federation(ctx context.Context) (string, error) {
	out, err := c.output(ctx, "scontrol", "show", "federation")
	return parseFederation(out), err
}

// parseFederation reads "Federation: name". A cluster that is in none prints nothing.
func parseFederation(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "Federation:"); ok {
			return oneLine(strings.TrimSpace(name), 80)
		}
	}
	return ""
}

// Federated returns the error of a cluster that is in a federation.
func Federated(name string) error {
	return fmt.Errorf("this cluster is in federation %q, in which jobs have siblings on other clusters that start and cancel each other: Evoslurm drives no federated cluster", name)
}
