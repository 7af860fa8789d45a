package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// turn holds what decides in Slurm which job goes first: the tier of the partition, then the priority.
type turn struct {
	tier     int
	priority uint64
}

func (t turn) compare(other turn) int {
	return cmp.Or(cmp.Compare(t.tier, other.tier), cmp.Compare(t.priority, other.priority))
}

// tierOf returns the highest or the lowest tier of a pending job's partitions. An evolving job must not
// overtake other jobs in any of them.
func (c *Core) tierOf(r *slurmctl.Job, highest bool) int {
	tier, first := 0, true
	for name := range strings.SplitSeq(r.Partition, ",") {
		if t := c.rules.limits.Tier(name); first || (t > tier) == highest {
			tier, first = t, false
		}
	}
	return tier
}

// overAccrual returns the queued jobs whose age does not count, because Slurm bounds how many jobs may age at
// once (MaxJobsAccrue, …). Jobs that were submitted first age first, including stock jobs. The age of the
// others starts to count later. O(pending jobs) if there is such a bound.
func (c *Core) overAccrual(s *snapshot) map[*job]bool {
	if c.ageing.Weight == 0 || c.ageing.Always || !c.ageing.Limits || !c.rules.limits.BoundsAccrual() {
		return nil
	}
	all, most := map[string][]waitingJob{}, map[string]int{}
	known := map[slurmctl.Subject]string{}
	for _, w := range c.waitingJobs(s) {
		partition, _, _ := strings.Cut(w.r.Partition, ",")
		who := subject(w.r, partition)
		among, ok := known[who]
		if !ok {
			var n int
			n, among = c.rules.limits.Accruing(who)
			known[who], most[among] = among, n
		}
		if among != "" {
			all[among] = append(all[among], w)
		}
	}
	over := map[*job]bool{}
	for among, jobs := range all {
		slices.SortFunc(jobs, func(a, b waitingJob) int {
			return cmp.Or(a.r.SubmitTime.Compare(b.r.SubmitTime), cmp.Compare(a.r.ID, b.r.ID))
		})
		for _, w := range jobs[min(most[among], len(jobs)):] {
			if w.j != nil {
				over[w.j] = true
			}
		}
	}
	return over
}

// waitingJob holds the record of a job that waits for nodes, and its evolving job, nil for a stock job.
type waitingJob struct {
	r *slurmctl.Job
	j *job
}

// waitingJobs lists the evolving and stock jobs whose age may count.
func (c *Core) waitingJobs(s *snapshot) (all []waitingJob) {
	for _, j := range c.active {
		if j.State == row.Queued && notEligible(&j.record) == "" {
			all = append(all, waitingJob{&j.record, j})
		}
	}
	for i := range s.jobs {
		if r := &s.jobs[i]; r.State == slurmctl.Pending && c.owner(r.ID) == nil && !c.isExpander(r) && queues(r) {
			all = append(all, waitingJob{r, nil})
		}
	}
	return all
}
