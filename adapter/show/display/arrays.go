package display

import (
	"fmt"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Line is a line of a list: a job, or the waiting tasks of an array with the values of the first one in the list.
type Line struct {
	api.Job
	tasks []uint32 // these have IDs of their own
	rest  string   // these wait in the array's record
}

// Label returns what squeue shows as the ID: 7, 7_3, or 7_[1-4,6%2].
func (l *Line) Label() string {
	if len(l.tasks) < 2 && l.rest == "" {
		return l.Job.Label()
	}
	slices.Sort(l.tasks)
	return fmt.Sprintf("%d_%s", l.Array, slurmctl.JoinTasks(l.tasks, l.rest, l.ArrayLimit))
}

// Fold returns the lines of jobs, in their order: one for all waiting tasks of an array, or, if apart, one for each that
// has an ID of its own.
func Fold(jobs []api.Job, apart bool) []Line {
	lines, of := make([]Line, 0, len(jobs)), map[uint32]int{}
	for _, j := range jobs {
		at, known := of[j.Array]
		if fold := j.Array != 0 && j.State == "queued" && !apart; !fold || !known {
			at = len(lines)
			if lines = append(lines, Line{Job: j}); !fold {
				continue
			}
			of[j.Array] = at
		}
		if l := &lines[at]; j.ArrayRest != "" {
			l.rest = j.ArrayRest
		} else {
			l.tasks = append(l.tasks, j.ArrayTask)
		}
	}
	return lines
}
