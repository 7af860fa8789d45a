package slurmsim

import "time"

// For those who need not look where nothing has changed.

// Version changes whenever something changes that commands show: jobs, nodes, partitions
// or reservations, but for priorities that age, starts that the backfill scheduler expects
// and what time alone changes (whether a reservation has begun).
func (c *Cluster) Version() uint64 { return c.loop.version + c.loop.reasons }

// Next is when, by [Cluster.Elapsed], the next thing on the agenda is due; it reports false
// where there is nothing.
func (c *Cluster) Next() (time.Duration, bool) {
	if len(c.agenda) == 0 {
		return 0, false
	}
	return c.agenda[0].at, true
}

// Looking is how long a command takes at present that changes nothing, but for chance.
func (c *Cluster) Looking() time.Duration {
	l := &c.options.Latency
	return l.Look + time.Duration(len(c.pending)+len(c.active))*l.PerJob
}

// Size is how many nodes the cluster has.
func (c *Cluster) Size() int { return len(c.nodes) }

// KeptIdle is how many nodes are idle and named by a reservation, begun or to come.
func (c *Cluster) KeptIdle() int {
	if len(c.reservations) == 0 {
		return 0
	}
	kept := newNodeSet(len(c.nodes))
	for _, r := range c.reservations {
		for n := r.set.next(0); n >= 0; n = r.set.next(n + 1) {
			kept.add(n)
		}
	}
	kept.and(c.usage.idle)
	kept.and(c.up)
	kept.minus(c.completing)
	return kept.count()
}

// why sets why a job waits.
func (c *Cluster) why(j *job, reason string) {
	if !waitsForNodes(j.Reason) || !waitsForNodes(reason) {
		if j.Reason != reason {
			c.loop.reasons++
		}
	}
	j.Reason = reason
}

// waitsForNodes reports whether a reason says no more than that its turn has not come.
func waitsForNodes(reason string) bool {
	return reason == "None" || reason == "Priority" || reason == "Resources"
}
