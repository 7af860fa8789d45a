package slurm

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// AddNodes adds the nodes that cannot be used, each until it can.
func AddNodes(c *state.Core, o *msg.Occupancy, s *state.Snapshot) {
	origin := o.Origin
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case !n.Usable(), slices.Contains(c.Leaked, n.Name): // Slurm starts nothing there
			o.Add(i, origin, planner.Forever)
		case len(c.Suspect) > 0 && IsSuspect(c, []string{n.Name}):
			o.Add(i, origin, c.Suspect[n.Name].Unix())
		case n.Power() != slurmctl.PowerOn:
			o.Add(i, origin, PowerReady(&c.Power, *n, s.Taken))
		case n.Unheard():
			c.Moves = true
			o.Add(i, origin, s.Taken.Unix()+max(Margin(c), 1))
		}
	}
}

// Releases returns the Unix second from which the plan can count on the nodes of a stock job.
func Releases(c *state.Core, r *slurmctl.Job, now int64) int64 {
	margin := Margin(c)
	epilog, known := epilogSeconds(c, r.Partition)
	if r.State == slurmctl.Completing {
		c.Moves = true
		if end := r.EndTime.Unix() + epilog; known && !r.EndTime.IsZero() && !c.ReachedSecond(now, end) {
			return end
		}
		return now + max(margin, 1)
	}
	margin = max(margin, epilog)
	if r.TimeLimit == slurmctl.Unlimited || r.EndTime.IsZero() || r.State == slurmctl.Suspended {
		return planner.Forever
	}
	return c.Until(now, r.EndTime.Unix()) + max(margin, 1)
}

// AddLinks does what AddPromises does, for a chain: between two links, all jobs may use its nodes.
func AddLinks(c *state.Core, o *msg.Occupancy, s *state.Snapshot, j *state.Job, now int64) {
	add := func(names []string, start, end int64) {
		for _, name := range names {
			if n, ok := s.Index[name]; ok {
				o.Add(n, start, end+Margin(c))
			}
		}
	}
	end := now // an overrunning link still holds its nodes
	for i, step := range Promised(c, j, now) {
		if i == 0 && j.State == row.Running {
			end = c.Until(now, step.End)
			continue
		}
		add(step.Nodes, step.Start, step.End)
	}
	add(j.Nodes(), o.Origin, end)
}

// CountsStand reports whether slurmctld may report outdated counts of allocated CPUs. After its
// clock was set back, it counts again only once the old time is reached or it restarts (source,
// all versions: last_set_all of the select plugins). What it reports about jobs is always correct.
func CountsStand(c *state.Core) bool { return !c.Reached(c.Now, c.CountsFrom) }
