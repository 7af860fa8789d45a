package api

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// JobName names a job or an array by its ID, or one task of an array: "20", "20_3".
type JobName struct {
	ID   uint32
	Task uint32
	One  bool // only this task
}

// ParseJobName reads what String writes.
func ParseJobName(text string) (n JobName, err error) {
	id, task, one := strings.Cut(text, "_")
	number, err := strconv.ParseUint(id, 10, 32)
	n = JobName{ID: uint32(number), One: one}
	if one && err == nil {
		number, err = strconv.ParseUint(task, 10, 32)
		n.Task = uint32(number)
	}
	if err != nil || n.ID == 0 {
		return JobName{}, Errorf(ErrInvalid, "invalid job ID %q", text)
	}
	return n, nil
}

func parseJobNames(texts []string) ([]JobName, error) {
	names := make([]JobName, len(texts))
	for i, text := range texts {
		var err error
		if names[i], err = ParseJobName(text); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (n JobName) String() string {
	if n.One {
		return fmt.Sprintf("%d_%d", n.ID, n.Task)
	}
	return idText(n.ID)
}

// Is reports whether a job has the name, or is of the array.
func (n JobName) Is(j *Job) bool {
	switch {
	case !n.One:
		return j.ID == n.ID || j.Array == n.ID
	case j.ArrayRest != "":
		return j.Array == n.ID && slurmctl.HasTask(j.ArrayRest, n.Task)
	}
	return j.Array == n.ID && j.ArrayTask == n.Task
}

// Label returns the job's ID, or ARRAY_TASK for a task of an array, or ARRAY_[TASKS%LIMIT] for an array's record.
func (j *Job) Label() string {
	switch {
	case j.ArrayRest != "":
		return fmt.Sprintf("%d_%s", j.Array, slurmctl.JoinTasks(nil, j.ArrayRest, j.ArrayLimit))
	case j.Array != 0:
		return fmt.Sprintf("%d_%d", j.Array, j.ArrayTask)
	}
	return idText(j.ID)
}

// CompareJobs orders jobs by their IDs, and tasks of an array by their numbers, the array's record last.
func CompareJobs(a, b Job) int {
	return cmp.Or(cmp.Compare(cmp.Or(a.Array, a.ID), cmp.Or(b.Array, b.ID)), cmp.Compare(len(a.ArrayRest), len(b.ArrayRest)),
		cmp.Compare(a.ArrayTask, b.ArrayTask), cmp.Compare(a.ID, b.ID))
}

// Asked returns the job's profile as the user wrote it, with the CPU frequencies of its steps.
func (j Job) Asked() string { return cmp.Or(j.CPUFreq, j.Profile) }
