package core

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// askMore makes the request for a growth's expander: all that the base job itself asked
// for, for as long as that may still run. Where its hold consists of the very nodes it
// needs not name them: there are sites that forbid that.
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

// An expander begins within expanderBegins or is asked for anew, and lasts for a minute at
// the least: for bringSeconds nodes that are brought must not be reserved for others.
const (
	expanderBegins = 5 * time.Second
	bringSeconds   = int64((slurmctl.ShortestLimit + expanderBegins) / time.Second)
)

// expanderLimit is the time limit of a job that brings nodes: in whole minutes, and no
// shorter than the base job may still run, as a companion has the nodes until then. Where
// others have reserved the nodes for right after that, it is shorter by less than a minute and
// expanderBegins: Slurm starts no job whose limit reaches into a reservation. It reports
// false where no minute is left before that.
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

// reservedAfter is when others have reserved any of some nodes next, from a time on; zero: never.
func (s *snapshot) reservedAfter(nodes []string, from time.Time) (next time.Time) {
	list := setOf(nodes)
	for _, r := range s.reservations {
		if _, ours := parseHold(r); !ours && !r.Start.Before(from) && (next.IsZero() || r.Start.Before(next)) && list.any(r.Nodes) {
			next = r.Start
		}
	}
	return next
}
