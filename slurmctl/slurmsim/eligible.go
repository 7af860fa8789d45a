package slurmsim

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// independent reports whether a pending job waits only for nodes: it is not held, has no later
// begin time, and depends on no other job. Otherwise it sets the reason.
func independent(c *Cluster, j *job) bool {
	if j.Priority == 0 {
		return false
	}
	if len(j.Request.After) > 0 && !dependenciesMet(c, j) {
		return false
	}
	if b := j.Request.Begin; !b.IsZero() && b.After(c.Now()) {
		c.why(j, "BeginTime")
		return false
	}
	switch j.Reason {
	case "BeginTime", "Dependency", "JobHeldUser", "JobHeldAdmin":
		c.why(j, "None")
	}
	return true
}

// dependenciesMet reports whether a job's dependencies are met.
func dependenciesMet(c *Cluster, j *job) bool {
	for _, d := range j.Request.After {
		other := c.Jobs[d.Job]
		switch {
		case other == nil:
			continue // ended long ago
		case !other.Ended():
			c.why(j, "Dependency")
			return false
		case d.Kind == "afterok" && other.State != slurmctl.Completed, d.Kind == "afternotok" && other.State == slurmctl.Completed:
			c.why(j, "DependencyNeverSatisfied")
			if j.Request.KillOnInvalidDep {
				c.Later(0, gives{j})
			}
			return false
		}
	}
	j.Request.After, j.Dependency = nil, ""
	return true
}

// gives gives up a job that can never start.
type gives struct{ Up *job }

// Act implements Action.
func (g gives) Act(c *Cluster) {
	if g.Up.State == slurmctl.Pending {
		finish(c, g.Up, slurmctl.Cancelled)
	}
}

// partitionAdmits reports whether the job's partition admits it (job_limits_check).
func partitionAdmits(c *Cluster, j *job) bool {
	if why := j.Part.against(j); why != "" {
		c.why(j, why)
		return false
	}
	if j.Reason == "PartitionDown" || j.Reason == "PartitionNodeLimit" || j.Reason == "PartitionTimeLimit" {
		c.why(j, "None")
	}
	return true
}

// isFirst reports whether no other pending job precedes this one (_top_priority): Slurm tries such a
// job when salloc submits it. Jobs in reservations are not compared with others.
func isFirst(c *Cluster, j *job) bool {
	for _, o := range c.Pending {
		if o == j || o.Reservation != j.Reservation || !independent(c, o) {
			continue
		}
		switch {
		case o.Part == j.Part:
		case !o.Part.Set.overlaps(j.Part.Set), o.Part.Tier < j.Part.Tier:
			continue
		case o.Part.Tier > j.Part.Tier:
			return false
		}
		if o.Priority > j.Priority && partitionAdmits(c, o) {
			return false
		}
	}
	return true
}

// readyJobs appends the pending jobs that are themselves ready to start (build_job_queue).
func readyJobs(c *Cluster, all []*job) []*job {
	if !c.Special {
		return append(all, inOrder(c)...)
	}
	for _, j := range inOrder(c) {
		if independent(c, j) && (len(j.Parts) > 0 || partitionAdmits(c, j)) {
			all = append(all, j)
		}
	}
	return all
}

// nextTurn returns when time alone will change something: a job's begin time, or a reservation's
// start or end.
func nextTurn(c *Cluster) time.Time {
	now, next := c.Now(), c.Now().Add(forever)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	if c.Special {
		for _, j := range c.Pending {
			sooner(j.Request.Begin)
		}
	}
	for _, r := range c.Reservations {
		sooner(r.Start)
		sooner(r.End)
	}
	return next
}
