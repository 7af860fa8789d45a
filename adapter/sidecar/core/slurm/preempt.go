package slurm

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// RankOf returns the rank of a job.
func RankOf(c *state.Core, r *slurmctl.Job) msg.Rank {
	if c.Rules.Limits.Preemption() == nil {
		return msg.Rank{}
	}
	return msg.Rank{r.Partition, r.QOS}
}

// WaitsForLower returns in words that a queued job is planned for the end of a lower-ranked job that Slurm
// would suspend for a stock job, or "" if it is not. A suspended job keeps its memory and resumes when Slurm
// decides, so no growth could be promised such nodes.
func WaitsForLower(c *state.Core, s *state.Snapshot, j *state.Job) string {
	preemption := c.Rules.Limits.Preemption()
	if preemption == nil || len(j.Plan) == 0 || c.ReachedSecond(s.Taken.Unix(), j.Plan[0].Start) {
		return ""
	}
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if r.State == slurmctl.Running && c.Owner(r.ID) == nil && preemption.Suspends(r.Partition, r.QOS, j.Record.Partition, j.Record.QOS) &&
			len(msg.Common(r.NodeList, j.Plan[0].Nodes)) > 0 {
			return fmt.Sprintf("planned for the end of job %d: Slurm would suspend it for a job of %s, but not for an evolving one", r.ID, j.Record.Partition)
		}
	}
	return ""
}

// FreeFor reports whether a job can begin on the nodes: they are free, or the jobs on them yield to it.
func FreeFor(c *state.Core, s *state.Snapshot, names []string, r *slurmctl.Job) bool {
	if Free(s, names) {
		return true
	}
	preemption := c.Rules.Limits.Preemption()
	if preemption == nil {
		return false
	}
	yielded, kept := msg.Set{}, msg.Set{}
	for i := range s.Jobs {
		other := &s.Jobs[i]
		if len(other.NodeList) == 0 || len(msg.Common(other.NodeList, names)) == 0 {
			continue
		}
		if c.Owner(other.ID) == nil && other.State == slurmctl.Running && preemption.Yields(other.Partition, other.QOS, r.Partition, r.QOS) {
			yielded.Add(other.NodeList)
		} else {
			kept.Add(other.NodeList)
		}
	}
	var rest []string
	for _, n := range names {
		if i, ok := s.Index[n]; !yielded[n] || kept[n] || !ok || !s.Nodes[i].Awake() {
			rest = append(rest, n)
		}
	}
	return Free(s, rest)
}
