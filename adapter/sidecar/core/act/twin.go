package act

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Two sidecars on two hosts have separate databases and do not know of each other. They would fight over the
// same jobs. Slurm shows the other one: a hold that appeared while this sidecar was watching, and that this
// sidecar did not request. Then this sidecar changes nothing until an administrator restarts it.
//
// A sidecar that lost its database finds its own holds in its first poll and adopts them.

// twinGrace is how long after the start the commands of a killed sidecar may still make holds.
const twinGrace = 2 * time.Minute

// WatchTwin returns an error if another sidecar drives the cluster. Every hold has the number of an attempt,
// and no sidecar uses a number twice. So a new hold beyond this sidecar's own count belongs to another
// sidecar.
func WatchTwin(c *state.Core, s *state.Snapshot) error {
	if c.Twin != nil || c.Snapshot == nil || !c.Passed(c.Now, c.Started.Add(twinGrace)) {
		return c.Twin
	}
	for _, name := range state.SortedKeys(s.Holds) {
		own := s.Holds[name]
		j := c.ByID[own.Job]
		if _, before := c.Snapshot.Reservations[name]; j != nil && own.Attempt > j.Attempt && !before {
			return standBack(c, name)
		}
	}
	return nil
}

// standBack stops all changes by this sidecar from now on.
func standBack(c *state.Core, hold string) error {
	c.Twin = fmt.Errorf("ANOTHER EVOSLURMD DRIVES THIS CLUSTER: it made the hold %s, which this one (on %s) did not; "+
		"this one changes nothing until it is restarted: stop the other one, then restart this one", hold, c.Site.Host)
	c.Log.Error(c.Twin.Error())
	c.Event(nil, "twin", map[string]any{"hold": hold, "host": c.Site.Host})
	return c.Twin
}
