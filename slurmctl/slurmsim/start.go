package slurmsim

import (
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// tryNow starts a job on some of these nodes if they are free (select_nodes of node_scheduler.c).
func tryNow(c *Cluster, j *job, avail nodeSet) verdict {
	if reason := anyLimit(c, j); reason != "" {
		c.why(j, reason)
		return overLimits
	}
	if slurmctl.KindOf(j.Reason) == slurmctl.LimitReason {
		c.why(j, "None")
	}
	allowed := c.Reservations.permitted(j, len(c.Nodes), c.Now(), false)
	usable, overlap := allowed.nodes, allowed.overlap
	if allowed.why != fine {
		c.why(j, allowed.reason())
		return allowed.why
	}
	c.keepSuitable(j, usable)
	ever := usable // the nodes on which it could run if no other job or reservation had them
	if j.Reservation == "" && overlap {
		ever = slices.Clone(j.Part.Set)
		c.keepSuitable(j, ever)
	}
	if ever.count() < j.NumNodes { // impossible in the current state
		if overlap {
			c.why(j, "Reservation")
			return reserved
		}
		c.why(j, "Resources")
		return notAvail
	}
	usable.and(avail)
	if j.Required != nil && !avail.holds(j.Required) {
		c.why(j, "ReqNodeNotAvail, May be reserved for other job")
		return notAvail
	}
	up := usable.count()
	usable.minus(c.Completing)
	usable.minus(c.Refused)
	usable.minus(c.Resuming)
	if set, ok := choose(c, j, &c.Usage, usable); ok {
		startJob(c, j, set.list())
		return fine
	}
	if makeRoom(c, j, usable) {
		return busy
	}
	if j.whole() {
		usable.and(c.Usage.Idle)
	} else {
		usable.minus(c.Usage.Sole)
	}
	if usable.count() == up && up < j.NumNodes { // none is busy
		c.why(j, "ReqNodeNotAvail, May be reserved for other job")
		return notAvail
	}
	c.why(j, "Resources")
	return busy
}
