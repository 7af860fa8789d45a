package slurmsim

import "time"

// Helpers for callers that skip work while nothing has changed.

// Version changes whenever something changes that commands show: jobs, nodes, partitions, or
// reservations. It ignores ageing priorities, starts expected by the backfill scheduler, and
// changes by time alone (whether a reservation has begun).
func (c *Cluster) Version() uint64 { return c.loop.version + c.loop.reasons }

// Next returns when, by [Cluster.Elapsed], the next event on the agenda is due; false if there is
// none.
func (c *Cluster) Next() (time.Duration, bool) {
	if len(c.agenda) == 0 {
		return 0, false
	}
	return c.agenda[0].at, true
}

// Looking returns how long a read-only command takes now, without random time.
func (c *Cluster) Looking() time.Duration {
	l := &c.options.Latency
	return l.Look + time.Duration(len(c.pending)+len(c.active))*l.PerJob
}

// Size returns how many nodes the cluster has.
func (c *Cluster) Size() int { return len(c.nodes) }

// KeptIdle returns how many nodes are idle and named by a current or future reservation.
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

// why sets the reason for which a job waits.
func (c *Cluster) why(j *job, reason string) {
	if !waitsForNodes(j.Reason) || !waitsForNodes(reason) {
		if j.Reason != reason {
			c.loop.reasons++
		}
	}
	j.Reason = reason
}

// waitsForNodes reports whether a reason means only that the job's turn has not come.
func waitsForNodes(reason string) bool {
	return reason == "None" || reason == "Priority" || reason == "Resources"
}
