package slurmsim

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// updateAll updates a job, or all tasks of an array.
func updateAll(c *Cluster, j *job, u slurmctl.JobUpdate) error {
	if j.ArrayTasks > 1 {
		for _, task := range others(c, j) {
			if err := update(c, task, u); err != nil {
				return err
			}
		}
	}
	return update(c, j, u)
}

// update applies all of u to a job, or nothing.
func update(c *Cluster, j *job, u slurmctl.JobUpdate) error {
	if err := mayUpdate(c, j, &u); err != nil {
		return err
	}
	part, several := c.Partitions.several(u.Partition)
	if u.Partition != "" && part == nil {
		return refusal("Invalid partition name specified")
	}
	if u.Dependency != nil {
		if err := depend(c, j, *u.Dependency); err != nil {
			return err
		}
	}
	if u.Reservation != nil {
		if r := c.Reservations.of(j.Reservation); r != nil {
			r.Used = c.Now()
		}
		j.Reservation = *u.Reservation
	}
	updateTimes(c, j, &u)
	if u.Partition != "" {
		j.Partition, j.Part, j.Parts, j.Request.Partition = u.Partition, part, several, u.Partition
	}
	if u.Switches > 0 {
		j.Request.Switches, j.Request.SwitchWait = u.Switches, 0
	}
	if u.NumNodes > 0 {
		j.NumNodes, j.Request.Nodes = u.NumNodes, u.NumNodes
	}
	updateTexts(j, &u)
	if u.Hold {
		j.Priority, j.Reason = 0, "JobHeldAdmin"
	}
	c.Disorder, c.Special = true, true
	c.touch(j)
	c.kick()
	return nil
}

// mayUpdate refuses an update that the job's state or its new reservation rule out.
func mayUpdate(c *Cluster, j *job, u *slurmctl.JobUpdate) error {
	if j.Ended() || j.State == slurmctl.Completing {
		return refusal("Job has already finished")
	}
	pendingOnly := u.StartNow || !u.StartTime.IsZero() || u.NumNodes > 0 || u.Partition != "" || u.Hold
	if pendingOnly && j.State != slurmctl.Pending {
		return refusal("Job is no longer pending execution")
	}
	if u.Reservation == nil {
		return nil
	}
	r, err := c.Reservations.open(*u.Reservation, j.Request.User)
	if r != nil {
		r.Used = c.Now()
	}
	return err
}

// updateTimes sets a job's begin time and its limit.
func updateTimes(c *Cluster, j *job, u *slurmctl.JobUpdate) {
	switch {
	case u.StartNow:
		j.Request.Begin, j.StartTime = c.second(), c.second()
	case !u.StartTime.IsZero():
		j.Request.Begin, j.StartTime = u.StartTime, u.StartTime
	}
	if u.TimeLimit != 0 {
		j.TimeLimit = u.TimeLimit
		if u.TimeLimit != slurmctl.Unlimited {
			j.TimeLimit = wholeMinutes(u.TimeLimit)
		}
		if j.active() {
			setLimit(c, j)
		}
	}
	if !u.EndTime.IsZero() && j.active() {
		j.TimeLimit = wholeMinutes(u.EndTime.Sub(j.StartTime))
		setLimit(c, j)
		j.EndTime, j.Ends = u.EndTime, u.EndTime.Unix()
	}
}

// updateTexts sets a job's name, its comments and its nice value.
func updateTexts(j *job, u *slurmctl.JobUpdate) {
	if u.Name != "" {
		j.Name = u.Name
	}
	if u.Comment != nil {
		j.Comment = *u.Comment
	}
	if u.AdminComment != nil {
		j.AdminComment = *u.AdminComment
	}
	if u.Nice != nil {
		j.Priority = uint64(max(int64(j.Priority)+int64(j.Nice)-int64(*u.Nice), 1))
		j.Nice, j.Request.Nice = *u.Nice, *u.Nice
	}
}

// depend sets a pending job's dependency: "", "afterok:7", "expand:7".
func depend(c *Cluster, j *job, text string) error {
	kind, rest, _ := strings.Cut(text, ":")
	var id slurmctl.JobID
	if _, err := fmt.Sscan(rest, &id); err != nil && text != "" {
		return refusal("Job dependency problem")
	}
	if kind == "expand" {
		if base := c.Jobs[id]; base == nil || base.State != slurmctl.Running {
			return refusal("Job dependency problem")
		}
		j.Request.After, j.Dependency, j.Expands = nil, "", id
		return nil
	}
	j.Request.After, j.Dependency = nil, text
	if text != "" {
		j.Request.After = []Dependency{{kind, id}}
	}
	return nil
}
