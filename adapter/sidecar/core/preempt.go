package core

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// rank decides for which jobs Slurm ends other jobs. It is the zero value if Slurm does not preempt.
type rank struct{ partition, qos string }

// rankOf returns the rank of a job.
func (c *Core) rankOf(r *slurmctl.Job) rank {
	if c.rules.limits.Preemption() == nil {
		return rank{}
	}
	return rank{r.Partition, r.QOS}
}

// tenure is the use of a node by a stock job that Slurm may end for others.
type tenure struct {
	planner.NodeBusy
	of rank
}

// yields reports whether Slurm ends jobs of rank `of` for a job of rank `to`.
func (o *occupancy) yields(of, to rank) bool {
	return o.preemption.Yields(of.partition, of.qos, to.partition, to.qos)
}

// claimed adds the use of the nodes by stock jobs that do not yield to a rank. It numbers the nodes by their
// position.
func (o *occupancy) claimed(busy []planner.NodeBusy, nodes []int, to rank) []planner.NodeBusy {
	if o.preemption == nil {
		return busy
	}
	for i, n := range nodes {
		for _, b := range o.tenures[n] {
			if !o.yields(b.of, to) {
				b.Node = i
				busy = append(busy, b.NodeBusy)
			}
		}
	}
	return busy
}

// preempts reports whether any job on the nodes yields to a rank.
func (o *occupancy) preempts(nodes []int, to rank) bool {
	return o.preemption != nil && slices.ContainsFunc(nodes, func(n int) bool {
		return slices.ContainsFunc(o.tenures[n], func(t tenure) bool { return o.yields(t.of, to) })
	})
}

// sparing plans one job on the nodes as if no job yielded. Like Slurm, it prefers a plan that makes jobs yield
// only if the job then completes sooner.
func (o *occupancy) sparing(nodes []int, to rank, plan func(rank) ([]planner.Planned, error)) ([]planner.Planned, error) {
	if !o.preempts(nodes, to) {
		return plan(to)
	}
	end := func(planned []planner.Planned, err error) int64 {
		if err != nil || planned[0].Unfit != "" {
			return planner.Forever
		}
		return planned[0].End()
	}
	best, err := plan(rank{})
	if taken, takenErr := plan(to); end(taken, takenErr) < end(best, err) {
		best, err = taken, takenErr
	}
	return best, err
}

// untouched returns the positions of the nodes on which no job yields to a rank, if a job on other nodes does;
// otherwise nil.
func (o *occupancy) untouched(nodes []int, to rank) []int {
	if !o.preempts(nodes, to) {
		return nil
	}
	rest := []int{}
	for i, n := range nodes {
		if !o.preempts([]int{n}, to) {
			rest = append(rest, i)
		}
	}
	return rest
}

// waitsForLower returns in words that a queued job is planned for the end of a lower-ranked job that Slurm
// would suspend for a stock job, or "" if it is not. A suspended job keeps its memory and resumes when Slurm
// decides, so no growth could be promised such nodes.
func (c *Core) waitsForLower(s *snapshot, j *job) string {
	preemption := c.rules.limits.Preemption()
	if preemption == nil || len(j.plan) == 0 || j.plan[0].start <= s.taken.Unix() {
		return ""
	}
	for i := range s.jobs {
		r := &s.jobs[i]
		if r.State == slurmctl.Running && c.owner(r.ID) == nil && preemption.Suspends(r.Partition, r.QOS, j.record.Partition, j.record.QOS) &&
			len(common(r.NodeList, j.plan[0].nodes)) > 0 {
			return fmt.Sprintf("planned for the end of job %d: Slurm would suspend it for a job of %s, but not for an evolving one", r.ID, j.record.Partition)
		}
	}
	return ""
}

// freeFor reports whether a job can begin on the nodes: they are free, or the jobs on them yield to it.
func (c *Core) freeFor(s *snapshot, names []string, r *slurmctl.Job) bool {
	if s.free(names) {
		return true
	}
	preemption := c.rules.limits.Preemption()
	if preemption == nil {
		return false
	}
	yielded, kept := set{}, set{}
	for i := range s.jobs {
		other := &s.jobs[i]
		if len(other.NodeList) == 0 || len(common(other.NodeList, names)) == 0 {
			continue
		}
		if c.owner(other.ID) == nil && other.State == slurmctl.Running && preemption.Yields(other.Partition, other.QOS, r.Partition, r.QOS) {
			yielded.add(other.NodeList)
		} else {
			kept.add(other.NodeList)
		}
	}
	var rest []string
	for _, n := range names {
		if i, ok := s.index[n]; !yielded[n] || kept[n] || !ok || !s.nodes[i].Awake() {
			rest = append(rest, n)
		}
	}
	return s.free(rest)
}
