package core

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// askMore builds the request for a growth's expander. The expander asks for everything that the
// base job asked for, and for as long as the base job may still run. If the hold consists of
// exactly these nodes, the request does not name them, because some sites forbid naming nodes.
func (c *Core) askMore(j *job, g *Grow, parked bool) {
	q := j.asked.More(len(g.Nodes), j.gres)
	q.Partition, q.Account, q.QOS = partitionOf(j), j.Account, j.QOS
	q.Name, q.Comment, q.Exclusive, q.WorkDir = g.Name, expanderMark, true, "/"
	hold, ok := c.reservations[g.Hold]
	exact := ok && g.Hold != "" && sameSet(hold.Nodes, g.Nodes)
	if !exact {
		q.NodeList = g.Nodes
	}
	q.Parked = parked && exact
	g.MayPark = exact
	if g.Merge {
		q.ExpandJob = g.Base
	}
	q.TimeLimit, _ = c.expanderLimit(j, g.Nodes)
	g.Request = q
}

// If an expander does not begin within expanderBegins, the sidecar asks for it again. It lasts for
// at least a minute. So for bringSeconds its nodes must not be reserved for others.
const (
	expanderBegins = 5 * time.Second
	bringSeconds   = int64((slurmctl.ShortestLimit + expanderBegins) / time.Second)
)

// expanderLimit returns the time limit of a job that brings nodes, in whole minutes. It is at least
// as long as the base job may still run, because a companion has the nodes until then. If others
// reserved the nodes for right after that, the limit is shorter by less than a minute and
// expanderBegins, because Slurm starts no job whose limit reaches into a reservation. It returns
// false if less than a minute is left before that.
func (c *Core) expanderLimit(j *job, nodes []string) (limit time.Duration, fits bool) {
	if j.record.TimeLimit == slurmctl.Unlimited {
		return slurmctl.Unlimited, true
	}
	limit = max(j.record.EndTime.Sub(c.now).Truncate(time.Minute)+time.Minute, slurmctl.ShortestLimit)
	if c.snapshot == nil {
		return limit, true
	}
	taken := c.snapshot.reservedAfter(nodes, j.record.EndTime)
	if free := taken.Sub(c.now) - expanderBegins; !taken.IsZero() && limit > free {
		return max(free.Truncate(time.Minute), slurmctl.ShortestLimit), free >= slurmctl.ShortestLimit
	}
	return limit, true
}

// reservedAfter returns the next time, not before `from`, at which others reserved any of the nodes, or zero if never.
func (s *snapshot) reservedAfter(nodes []string, from time.Time) (next time.Time) {
	list := setOf(nodes)
	for _, r := range s.reservations {
		if _, ours := parseHold(r); !ours && !r.Start.Before(from) && (next.IsZero() || r.Start.Before(next)) && list.any(r.Nodes) {
			next = r.Start
		}
	}
	return next
}
