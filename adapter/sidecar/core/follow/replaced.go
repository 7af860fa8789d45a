package follow

import (
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// After a crash, slurmctld may have lost a job that was submitted seconds before, and reused its number for
// the next one. That is certain if the user differs, since a job's user never changes. Everything else may
// change, by users or by a requeue, including the submit time. But a job that has both another submit time and
// another name or marker than a moment ago counts as another one: if it is the same one after all, it is only
// adopted again. It may also have forgotten that tasks of an array got records of their own: a record then stands for
// several tasks again, or for another one than before.

// reused reports whether a job's number now belongs to another job of the same user.
func reused(was, is *slurmctl.Job) bool {
	return was.SubmitTime.Unix() != is.SubmitTime.Unix() && (was.Name != is.Name || was.Comment != is.Comment)
}

// anothers reports whether a record of Slurm with a job's number is that of another job.
func anothers(j *state.Job, r *slurmctl.Job) bool {
	was := &j.Record
	if was.ID == 0 { // not seen since the sidecar was started
		was = &slurmctl.Job{ID: r.ID, SubmitTime: j.Submitted, Name: j.Name, Comment: r.Comment}
	}
	return r.UID != j.UID || adopt.OtherTasks(j, r) || was.ID == r.ID && reused(was, r)
}

// In returns one of the job's Slurm jobs as a snapshot shows it, or nil.
func In(j *state.Job, s *state.Snapshot, id slurmctl.JobID) *slurmctl.Job {
	if r := s.ByID[id]; r != nil && r.UID == j.UID {
		return r
	}
	return nil
}

// replaced ends a job whose number now belongs to another job.
func replaced(c *state.Core, s *state.Snapshot, j *state.Job) bool {
	r := s.ByID[adopt.PresentJob(c, j)]
	if r == nil || j.Busy || !anothers(j, r) {
		return false
	}
	c.LogJob(j).Warn("slurmctld lost the job and reused its ID")
	if r.UID != j.UID { // else the numbers of the chain's other jobs may be those of other jobs of the user
		cancelChain(c, j)
	}
	end(c, j, slurmctl.Job{})
	return true
}

// Disown removes the numbers of jobs that brought nodes if they belong to other jobs now.
func Disown(c *state.Core, s *state.Snapshot) {
	maps.DeleteFunc(c.ByID, func(id slurmctl.JobID, j *state.Job) bool {
		r := s.ByID[id]
		if r == nil || id == j.BaseID() || slices.Contains(j.Chain, id) || j.Busy {
			return false
		}
		own, ours := state.ParseHoldName(r.Name)
		return !ours || own.Job != j.BaseID() || !adopt.MayBring(c, r, j)
	})
}

// Unread discards what was read of jobs that are not adopted, if their numbers belong to other jobs now.
func Unread(c *state.Core, s *state.Snapshot) {
	replaced := func(id slurmctl.JobID) bool {
		if c.Snapshot == nil || c.Snapshot.ByID[id] == nil || s.ByID[id] == nil {
			return false
		}
		was, is := c.Snapshot.ByID[id], s.ByID[id]
		return was.UID != is.UID || reused(was, is)
	}
	maps.DeleteFunc(c.Asked, func(id slurmctl.JobID, _ *state.RequestRead) bool { return replaced(id) })
	maps.DeleteFunc(c.Scripts, func(id slurmctl.JobID, _ *state.Script) bool { return replaced(id) })
	maps.DeleteFunc(c.Refused, func(id slurmctl.JobID, _ state.Refused) bool { return replaced(id) })
}
