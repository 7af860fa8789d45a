package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// overAccrual returns the queued jobs whose age does not count, because Slurm bounds how many jobs may age at
// once (MaxJobsAccrue, …). Jobs that were submitted first age first, including stock jobs. The age of the
// others starts to count later. O(pending jobs) if there is such a bound.
func overAccrual(c *state.Core, s *state.Snapshot) map[*state.Job]bool {
	if c.Ageing.Weight == 0 || c.Ageing.Always || !c.Ageing.Limits || !c.Rules.Limits.BoundsAccrual() {
		return nil
	}
	all, most := map[string][]waitingJob{}, map[string]int{}
	known := map[slurmctl.Subject]string{}
	for _, w := range waitingJobs(c, s) {
		partition, _, _ := strings.Cut(w.r.Partition, ",")
		who := state.Subject(w.r, partition)
		among, ok := known[who]
		if !ok {
			var n int
			n, among = c.Rules.Limits.Accruing(who)
			known[who], most[among] = among, n
		}
		if among != "" {
			all[among] = append(all[among], w)
		}
	}
	over := map[*state.Job]bool{}
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
	j *state.Job
}

// waitingJobs lists the evolving and stock jobs whose age may count.
func waitingJobs(c *state.Core, s *state.Snapshot) (all []waitingJob) {
	for _, j := range c.Active {
		if j.State == row.Queued && NotEligible(&j.Record) == "" {
			all = append(all, waitingJob{&j.Record, j})
		}
	}
	for i := range s.Jobs {
		if r := &s.Jobs[i]; r.State == slurmctl.Pending && c.Owner(r.ID) == nil && !slurm.IsExpander(c, r) && slurm.Queues(r) {
			all = append(all, waitingJob{r, nil})
		}
	}
	return all
}
