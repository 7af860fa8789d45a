package slurmtest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WaitIdle waits until all nodes are idle.
func (c *Cluster) WaitIdle(ctx context.Context) error {
	return c.waitIdle(ctx, func() error { return nil })
}

// waitIdle waits until all nodes are idle, or until healthy fails.
func (c *Cluster) waitIdle(ctx context.Context, healthy func() error) error {
	for {
		if err := healthy(); err != nil {
			return err
		}
		out, err := c.Run(ctx, Root, "sinfo", "-h", "-N", "-o", "%N %T")
		idle := map[string]bool{}
		for line := range strings.Lines(out) {
			if node, state, _ := strings.Cut(strings.TrimSpace(line), " "); state == "idle" {
				idle[node] = true
			}
		}
		if err == nil && len(idle) == c.nodes {
			return nil
		}
		if pauseErr := pause(ctx); pauseErr != nil {
			return fmt.Errorf("slurmtest: %d of %d nodes are idle (%v): %w", len(idle), c.nodes, err, pauseErr)
		}
	}
}

// pause waits briefly between two checks.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// Leftovers lists what remains of users' jobs in a cluster.
type Leftovers struct {
	Jobs          []string // "ID name state" of jobs pending, running or completing
	Reservations  []string // names
	AllocatedCPUs int
	Nodes         []string // "name state" of the nodes that are not idle
}

// None reports whether Slurm is clean.
func (l Leftovers) None() bool {
	return len(l.Jobs) == 0 && len(l.Reservations) == 0 && l.AllocatedCPUs == 0 && len(l.Nodes) == 0
}

func (l Leftovers) String() string {
	if l.None() {
		return "nothing left"
	}
	return fmt.Sprintf("%d jobs %v, %d reservations %v, %d CPUs allocated, nodes not idle %v",
		len(l.Jobs), l.Jobs, len(l.Reservations), l.Reservations, l.AllocatedCPUs, l.Nodes)
}

// Leftovers returns what is still there; a clean cluster has nothing. Jobs that have just ended may
// be completing for a moment.
func (c *Cluster) Leftovers(ctx context.Context) (Leftovers, error) {
	var l Leftovers
	jobs, err := c.Run(ctx, Root, "squeue", "-h", "-a", "-o", "%i %j %T")
	if err != nil {
		return l, err
	}
	for line := range strings.Lines(jobs) {
		l.Jobs = append(l.Jobs, strings.TrimSpace(line))
	}
	reservations, err := c.Run(ctx, Root, "scontrol", "-o", "show", "reservation")
	if err != nil {
		return l, err
	}
	for field := range strings.FieldsSeq(reservations) {
		if name, ok := strings.CutPrefix(field, "ReservationName="); ok {
			l.Reservations = append(l.Reservations, name)
		}
	}
	nodes, err := c.Run(ctx, Root, "sinfo", "-h", "-N", "-a", "-o", "%N %T %C")
	if err != nil {
		return l, err
	}
	seen := map[string]bool{} // sinfo lists a node once per partition
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		if len(f) != 3 || seen[f[0]] {
			continue
		}
		seen[f[0]] = true
		allocated, _, _ := strings.Cut(f[2], "/")
		n, err := strconv.Atoi(allocated)
		if err != nil {
			return l, fmt.Errorf("slurmtest: sinfo's %q: %w", line, err)
		}
		l.AllocatedCPUs += n
		if strings.TrimRight(f[1], "~#%!") != "idle" { // powered-down nodes are idle as well
			l.Nodes = append(l.Nodes, f[0]+" "+f[1])
		}
	}
	return l, nil
}
