package core

import (
	"fmt"
	"time"
)

// Two sidecars on two hosts have separate databases and do not know of each other. They would fight over the
// same jobs. Slurm shows the other one: a hold that appeared while this sidecar was watching, and that this
// sidecar did not request. Then this sidecar changes nothing until an administrator restarts it.
//
// A sidecar that lost its database finds its own holds in its first poll and adopts them.

// twinGrace is how long after the start the commands of a killed sidecar may still make holds.
const twinGrace = 2 * time.Minute

// watchTwin returns an error if another sidecar drives the cluster. Every hold has the number of an attempt,
// and no sidecar uses a number twice. So a new hold beyond this sidecar's own count belongs to another
// sidecar.
func (c *Core) watchTwin(s *snapshot) error {
	if c.twin != nil || c.snapshot == nil || c.now.Sub(c.started) <= twinGrace {
		return c.twin
	}
	for _, name := range sortedKeys(s.reservations) {
		own, ours := parseHold(s.reservations[name])
		j := c.byID[own.job]
		if _, before := c.snapshot.reservations[name]; ours && j != nil && own.attempt > j.attempt && !before {
			return c.standBack(name)
		}
	}
	return nil
}

// standBack stops all changes by this sidecar from now on.
func (c *Core) standBack(hold string) error {
	c.twin = fmt.Errorf("ANOTHER EVOSLURMD DRIVES THIS CLUSTER: it made the hold %s, which this one (on %s) did not; "+
		"this one changes nothing until it is restarted: stop the other one, then restart this one", hold, c.site.Host)
	c.log.Error(c.twin.Error())
	c.event(nil, "twin", map[string]any{"hold": hold, "host": c.site.Host})
	return c.twin
}
