package slurmsim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func sortedIDs(jobs map[slurmctl.JobID]*job) []slurmctl.JobID { return slices.Sorted(maps.Keys(jobs)) }

// order compares two jobs by urgency.
func (c *Cluster) order(a, b *job) int {
	if in, other := a.Reservation != "", b.Reservation != ""; in != other {
		if in {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.part.Tier, a.part.Tier), cmp.Compare(b.Priority, a.Priority),
		a.SubmitTime.Compare(b.SubmitTime), cmp.Compare(a.ID, b.ID))
}

// queued adds to the list of pending jobs; unqueued removes.
func (c *Cluster) queued(j *job) {
	if n := len(c.pending); n > 0 && c.order(c.pending[n-1], j) > 0 {
		c.disorder = true
	}
	c.pending = append(c.pending, j)
	c.special = c.special || !j.plain()
}

func (c *Cluster) unqueued(j *job) {
	if i := slices.Index(c.pending, j); i >= 0 {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
}

// inactive removes a job from the active jobs.
func (c *Cluster) inactive(j *job) {
	if i := slices.Index(c.active, j); i >= 0 {
		c.active = slices.Delete(c.active, i, i+1)
		if !j.whole() {
			c.shared--
		}
	}
	if i := slices.Index(c.byEnd, j); i >= 0 {
		c.byEnd = slices.Delete(c.byEnd, i, i+1)
	}
}

// drop removes a job from the completing jobs.
func (c *Cluster) drop(j *job) {
	if i := slices.Index(c.ending, j); i >= 0 {
		c.ending = slices.Delete(c.ending, i, i+1)
	}
}

// leaving returns the completing jobs.
func (c *Cluster) leaving() []*job {
	var all []*job
	for _, j := range c.ending {
		if j.State == slurmctl.Completing {
			all = append(all, j)
		}
	}
	return all
}

// byLimit returns the active jobs in the order in which their limits end them.
func (c *Cluster) byLimit() []*job {
	if c.byEnd == nil && len(c.active) > 0 {
		c.byEnd = slices.Clone(c.active)
		slices.SortStableFunc(c.byEnd, func(a, b *job) int { return cmp.Compare(a.ends, b.ends) })
	}
	return c.byEnd
}

// refers reports whether a pending or running job uses the reservation.
func (c *Cluster) refers(name string) bool {
	in := func(j *job) bool { return j.Reservation == name }
	return slices.ContainsFunc(c.pending, in) || slices.ContainsFunc(c.active, in)
}

// count is the use of a bound: running jobs, their nodes, and submitted jobs.
type count struct{ jobs, nodes, submitted int }

// counted counts the active jobs that f selects. Slurm keeps counting merged expanders until it
// rereads its configuration (measured on 22.05).
func (c *Cluster) counted(f func(*job) bool) (n count) {
	for _, j := range c.active {
		if f(j) {
			n.jobs++
			n.submitted++
			n.nodes += len(j.nodes)
		}
	}
	for _, j := range c.merged {
		if f(j) {
			n.jobs++
			n.submitted++
		}
	}
	for _, j := range c.pending {
		if f(j) {
			n.submitted += j.ArrayTasks
		}
	}
	return n
}
