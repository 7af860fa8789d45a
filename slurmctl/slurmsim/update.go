package slurmsim

import (
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// update applies all of u to a job, or nothing.
func update(c *Cluster, j *job, u slurmctl.JobUpdate) error {
	if j.Ended() || j.State == slurmctl.Completing {
		return refusal("Job has already finished")
	}
	pendingOnly := u.StartNow || !u.StartTime.IsZero() || u.NumNodes > 0 || u.Partition != ""
	if pendingOnly && j.State != slurmctl.Pending {
		return refusal("Job is no longer pending execution")
	}
	if u.Reservation != nil && *u.Reservation != "" {
		r := c.reservations.named(*u.Reservation)
		if r == nil {
			return refusal("Requested reservation is invalid")
		}
		if !r.allows(j.request.User) {
			return refusal("Access denied to requested reservation")
		}
		r.used = c.Now()
	}
	part, several := c.partitions.several(u.Partition)
	if u.Partition != "" && part == nil {
		return refusal("Invalid partition name specified")
	}
	if u.Dependency != nil {
		if err := depend(c, j, *u.Dependency); err != nil {
			return err
		}
	}
	switch {
	case u.StartNow:
		j.request.Begin, j.StartTime = c.second(), c.second()
	case !u.StartTime.IsZero():
		j.request.Begin, j.StartTime = u.StartTime, u.StartTime
	}
	if u.Reservation != nil {
		if r := c.reservations.named(j.Reservation); r != nil {
			r.used = c.Now()
		}
		j.Reservation = *u.Reservation
	}
	if u.TimeLimit != 0 {
		j.TimeLimit = u.TimeLimit
		if u.TimeLimit != slurmctl.Unlimited {
			j.TimeLimit = (u.TimeLimit + time.Minute - 1).Truncate(time.Minute)
		}
		if j.active() {
			setLimit(c, j)
		}
	}
	if !u.EndTime.IsZero() && j.active() {
		j.TimeLimit = (u.EndTime.Sub(j.StartTime) + time.Minute - 1).Truncate(time.Minute)
		setLimit(c, j)
		j.EndTime, j.ends = u.EndTime, u.EndTime.Unix()
	}
	if u.Partition != "" {
		j.Partition, j.part, j.parts, j.request.Partition = u.Partition, part, several, u.Partition
	}
	if u.NumNodes > 0 {
		j.NumNodes, j.request.Nodes = u.NumNodes, u.NumNodes
	}
	if u.Comment != nil {
		j.Comment = *u.Comment
	}
	if u.AdminComment != nil {
		j.AdminComment = *u.AdminComment
	}
	if u.Nice != nil {
		j.Priority = uint64(max(int64(j.Priority)+int64(j.Nice)-int64(*u.Nice), 1))
		j.Nice, j.request.Nice = *u.Nice, *u.Nice
	}
	c.disorder, c.special = true, true
	c.touch(j)
	c.kick()
	return nil
}

// depend sets a pending job's dependency: "", "afterok:7", "expand:7".
func depend(c *Cluster, j *job, text string) error {
	kind, rest, _ := strings.Cut(text, ":")
	var id slurmctl.JobID
	if _, err := fmt.Sscan(rest, &id); err != nil && text != "" {
		return refusal("Job dependency problem")
	}
	if kind == "expand" {
		if base := c.jobs[id]; base == nil || base.State != slurmctl.Running {
			return refusal("Job dependency problem")
		}
		j.request.After, j.Dependency, j.expands = nil, "", id
		return nil
	}
	j.request.After, j.Dependency = nil, text
	if text != "" {
		j.request.After = []Dependency{{kind, id}}
	}
	return nil
}
