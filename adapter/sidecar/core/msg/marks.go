package msg

import (
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ReadMarks reads the comments of all jobs. It reuses the result for a job whose comment has not changed. The
// shell calls it outside of the loop, with each poll. O(bytes of new comments).
func ReadMarks(jobs []slurmctl.Job, before []Mark) []Mark {
	known := make(map[slurmctl.JobID]*Mark, len(before))
	for i := range before {
		known[before[i].Job] = &before[i]
	}
	marks := []Mark{}
	for i := range jobs {
		r := &jobs[i]
		if !request.MayBeMarked(r.Comment) {
			continue
		}
		m := Mark{Job: r.ID, Comment: r.Comment}
		if old := known[r.ID]; old != nil && old.Comment == r.Comment {
			m = *old
		} else {
			m.Request, m.Asked, m.Err = request.ParseMarker(r.Comment)
		}
		marks = append(marks, m)
	}
	return marks
}
