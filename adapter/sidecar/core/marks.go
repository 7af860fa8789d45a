package core

import (
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Mark holds what the marker in a job's comment says.
type Mark struct {
	Job     slurmctl.JobID
	Comment string
	Request request.Request
	Asked   bool // there is a marker
	Err     error
}

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

// mark returns what the marker of a job says, as the poll read it. The core itself reads only comments that no
// poll has shown: those that it has written since.
func (c *Core) mark(r *slurmctl.Job) (request.Request, bool, error) {
	if s := c.snapshot; s != nil {
		if m := s.marks[r.ID]; m != nil && m.Comment == r.Comment {
			return m.Request, m.Asked, m.Err
		}
	}
	return request.ParseMarker(r.Comment)
}
