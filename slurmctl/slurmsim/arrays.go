package slurmsim

import (
	"fmt"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// split makes a separate record for an array's next task.
func split(c *Cluster, all *job) *job {
	all.ArrayTasks--
	task := *all
	c.LastID++
	task.ID, task.ArrayTasks = c.LastID, 1
	task.ArrayLimit = 0
	task.Display = fmt.Sprintf("%d_%d", all.ID, all.Request.Array-all.ArrayTasks)
	task.Stale = false
	setWaiting(all)
	c.Jobs[task.ID] = &task
	c.queued(&task)
	c.touch(all)
	return &task
}

// setWaiting writes how squeue shows an array's record. Its tasks are always the last ones of the array.
func setWaiting(all *job) {
	first, last, limit := all.Request.Array-all.ArrayTasks+1, all.Request.Array, ""
	if all.Request.ArrayLimit > 0 {
		limit = fmt.Sprintf("%%%d", all.Request.ArrayLimit)
	}
	switch {
	case all.ArrayTasks > 1:
		all.Display, all.ArrayLimit = fmt.Sprintf("%d_[%d-%d%s]", all.ID, first, last, limit), all.Request.ArrayLimit
	case all.Request.Array > 1:
		all.Display, all.ArrayLimit = fmt.Sprintf("%d_%d", all.ID, last), 0
	default:
		all.Display, all.ArrayLimit = fmt.Sprintf("%d_[%d%s]", all.ID, last, limit), all.Request.ArrayLimit
	}
}

// throttled reports whether as many tasks of a task's array run as may run at once.
func throttled(c *Cluster, j *job) bool {
	most := j.Request.ArrayLimit
	if most == 0 || j.Request.Array == 0 {
		return false
	}
	for _, other := range c.Active {
		if other.ArrayJobID == j.ArrayJobID {
			most--
		}
	}
	return most <= 0
}

// anyLimit returns the reason of a limit that blocks a pending job, or "".
func anyLimit(c *Cluster, j *job) string {
	if throttled(c, j) {
		return "JobArrayTaskLimit"
	}
	if licensesAway(c, j) {
		return "Licenses"
	}
	return limitReason(c, j)
}

// others returns the tasks with records of their own beside an array's record, in the order of their IDs.
func others(c *Cluster, all *job) []*job {
	var tasks []*job
	for _, id := range sortedIDs(c.Jobs) {
		if j := c.Jobs[id]; j != all && j.ArrayJobID == all.ID && !j.Ended() {
			tasks = append(tasks, j)
		}
	}
	return tasks
}

// named returns the records of tasks from low to high, with a record of its own for each, unless they are all tasks
// of the array's record. The model takes the first tasks of a record, or all.
func (c *Cluster) tasks(array slurmctl.JobID, low, high int) ([]*job, error) {
	var found []*job
	for _, j := range c.Jobs {
		if j.ArrayJobID != array {
			continue
		}
		if n, is := j.Task(); is && int(n) >= low && int(n) <= high && !j.Ended() {
			found = append(found, j)
		}
	}
	all := c.Jobs[array]
	if all == nil || all.Request.Array == 0 {
		return nil, refusal("Invalid job id specified")
	}
	first := all.Request.Array - all.ArrayTasks + 1
	switch {
	case all.ArrayTasks <= 1, all.State != slurmctl.Pending, high < first:
	case low > first:
		return nil, refusal("slurmsim: only the first of the waiting tasks can be named")
	case high >= all.Request.Array:
		found = append(found, all)
	default:
		for n := first; n <= high; n++ {
			found = append(found, split(c, all))
		}
	}
	if len(found) == 0 {
		return nil, refusal("Invalid job id specified")
	}
	return found, nil
}

// joined leaves out pending tasks that squeue shows in the line of their array's record.
func joined(c *Cluster, all []*job) []*job {
	shown := all[:0]
	for _, j := range all {
		rest := c.Jobs[j.ArrayJobID]
		if rest == nil || rest == j || rest.ArrayTasks <= 1 || rest.State != slurmctl.Pending || j.State != slurmctl.Pending ||
			j.Name != rest.Name || j.Partition != rest.Partition {
			shown = append(shown, j)
		}
	}
	return shown
}
