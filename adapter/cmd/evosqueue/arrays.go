package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// line is a line of the table: a job, or the waiting tasks of an array with the values of the one that starts first.
type line struct {
	api.Job
	tasks []uint32 // of these; nil: a job
}

// label returns what squeue shows as the ID: 7, 7_3, or 7_[1-4,6].
func (l line) label() string {
	if len(l.tasks) < 2 {
		return l.Label()
	}
	slices.Sort(l.tasks)
	numbers := make([]string, len(l.tasks))
	for i, n := range l.tasks {
		numbers[i] = strconv.FormatUint(uint64(n), 10)
	}
	return fmt.Sprintf("%d_%s", l.Array, slurmctl.CompressNodes(numbers))
}

// folded returns the lines of jobs, in their order: one for all waiting tasks of an array, or one for each if apart.
func folded(jobs []api.Job, apart bool) []line {
	lines, of := make([]line, 0, len(jobs)), map[uint32]int{}
	for _, j := range jobs {
		if j.Array == 0 || j.State != "queued" || apart {
			lines = append(lines, line{Job: j})
			continue
		}
		at, known := of[j.Array]
		if !known {
			at = len(lines)
			lines, of[j.Array] = append(lines, line{Job: j}), at
		}
		lines[at].tasks = append(lines[at].tasks, j.ArrayTask)
	}
	return lines
}

// wanted is a job that --jobs names: a job or an array by its ID, or one task of an array.
type wanted struct {
	id   uint32
	task uint32
	one  bool // only this task
}

func (w wanted) is(j api.Job) bool {
	if w.one {
		return j.Array == w.id && j.ArrayTask == w.task
	}
	return j.ID == w.id || j.Array == w.id
}

func (w wanted) String() string {
	if w.one {
		return fmt.Sprintf("%d_%d", w.id, w.task)
	}
	return strconv.FormatUint(uint64(w.id), 10)
}
