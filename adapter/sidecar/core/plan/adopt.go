package plan

import (
	"iter"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// IsComing reports whether a job that asks to evolve is neither adopted nor refused yet,
// because its request or its limits are still unread. After the database was lost, a running
// job waits to be adopted again. If it calls next meanwhile, it must not get the error that
// there is no such job.
func IsComing(c *state.Core, id slurmctl.JobID) bool {
	_, seen := c.Coming[id]
	return seen && c.ByID[id] == nil && c.Refused[id].ID == 0
}

// NoteHandling records that the core is handling a job.
func NoteHandling(c *state.Core, j *state.Job) {
	stage := msg.First
	if j.Settled {
		stage = msg.Again
	}
	c.Handling.Note(j.BaseID(), j.Submitted, stage)
}

// Each returns jobs one after the other and records which one is being handled. If a job ends
// the process, it stays recorded.
func Each(c *state.Core, jobs []*state.Job) iter.Seq[*state.Job] {
	return func(yield func(*state.Job) bool) {
		outer := *c.Handling
		for _, j := range jobs {
			if NoteHandling(c, j); !yield(j) {
				break
			}
		}
		*c.Handling = outer
	}
}

// Mark returns what the marker of a job says, as the poll read it. The core itself reads only comments that no
// poll has shown: those that it has written since.
func Mark(c *state.Core, r *slurmctl.Job) (request.Request, bool, error) {
	if s := c.Snapshot; s != nil {
		if m := s.Marks[r.ID]; m != nil && m.Comment == r.Comment {
			return m.Request, m.Asked, m.Err
		}
	}
	return request.ParseMarker(r.Comment)
}
