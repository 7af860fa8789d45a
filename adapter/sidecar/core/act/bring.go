package act

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// askMore builds the request for a growth's expander. The expander asks for everything that the
// base job asked for, and for as long as the base job may still run. If the hold consists of
// exactly these nodes, the request does not name them, because some sites forbid naming nodes.
func askMore(c *state.Core, j *state.Job, g *msg.Grow, parked bool) {
	q := j.Asked.More(len(g.Nodes), j.GRES)
	q.Partition, q.Account, q.QOS = slurm.PartitionOf(j), j.Account, j.QOS
	q.Name, q.Comment, q.Exclusive, q.WorkDir = g.Name, slurm.ExpanderComment(g.Base, g.Step, g.Merge), true, "/"
	hold, ok := c.Reservations[g.Hold]
	exact := ok && g.Hold != "" && msg.SameSet(hold.Nodes, g.Nodes) && g.Inside == "" // Slurm may start it in either
	if !exact {
		q.NodeList = g.Nodes
	}
	q.Parked = parked && exact
	g.MayPark = exact
	if g.Merge {
		q.ExpandJob = g.Base
	}
	q.TimeLimit, _ = ExpanderLimit(c, j, g.Nodes)
	g.Request = q
}

// ExpanderLimit returns the time limit of a job that brings nodes, in whole minutes. It is at least
// as long as the base job may still run, because a companion has the nodes until then. If others
// reserved the nodes for right after that, the limit is shorter by less than a minute and
// ExpanderBegins, because Slurm starts no job whose limit reaches into a reservation. It returns
// false if less than a minute is left before that.
func ExpanderLimit(c *state.Core, j *state.Job, nodes []string) (limit time.Duration, fits bool) {
	if j.Record.TimeLimit == slurmctl.Unlimited {
		return slurmctl.Unlimited, true
	}
	limit = max(j.Record.EndTime.Sub(c.Now).Truncate(time.Minute)+time.Minute, slurmctl.ShortestLimit)
	if c.Snapshot == nil {
		return limit, true
	}
	taken := reservedAfter(c.Snapshot, nodes, j.Record.EndTime)
	if free := taken.Sub(c.Now) - plan.ExpanderBegins; !taken.IsZero() && limit > free {
		return max(free.Truncate(time.Minute), slurmctl.ShortestLimit), free >= slurmctl.ShortestLimit
	}
	return limit, true
}

// reservedAfter returns the next time, not before `from`, at which others reserved any of the nodes, or zero if never.
func reservedAfter(s *state.Snapshot, nodes []string, from time.Time) (next time.Time) {
	list := msg.SetOf(nodes)
	for _, r := range s.Reservations {
		if _, ours := s.Holds[r.Name]; !ours && !r.Start.Before(from) && (next.IsZero() || r.Start.Before(next)) && list.Any(r.Nodes) {
			next = r.Start
		}
	}
	return next
}
