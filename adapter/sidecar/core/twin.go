package core

import (
	"fmt"
	"time"
)

// Two sidecars on two hosts have a database each, and neither knows of the other. They would
// tear at the same jobs. What betrays another one is in Slurm: a hold that was made since
// this sidecar watches, by nobody's order. This one then changes nothing until it is
// restarted: that is for an administrator to decide.
//
// A sidecar whose database was lost finds its own holds in its first poll: they are adopted.

// twinGrace is how long after the start the commands of a sidecar that was killed may still
// make holds.
const twinGrace = 2 * time.Minute

// watchTwin reports whether another sidecar drives the cluster. Every hold bears the number
// of an attempt, and no sidecar makes one twice: a new one beyond this sidecar's own count is
// another's.
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

// standBack has this sidecar change nothing from now on.
func (c *Core) standBack(hold string) error {
	c.twin = fmt.Errorf("ANOTHER EVOSLURMD DRIVES THIS CLUSTER: it made the hold %s, which this one (on %s) did not; "+
		"this one changes nothing until it is restarted: stop the other one, then restart this one", hold, c.site.Host)
	c.log.Error(c.twin.Error())
	c.event(nil, "twin", map[string]any{"hold": hold, "host": c.site.Host})
	return c.twin
}
