package core

import (
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// After a crash, slurmctld may have lost a job that was submitted seconds before, and reused its number for
// the next one. That is certain if the user differs, since a job's user never changes, or if the next job
// brings nodes to another job. Everything else may change, by users or by a requeue, including the submit
// time.

// in returns one of the job's Slurm jobs as a snapshot shows it, or nil.
func (j *job) in(s *snapshot, id slurmctl.JobID) *slurmctl.Job {
	if r := s.byID[id]; r != nil && r.UID == j.UID {
		return r
	}
	return nil
}

// replaced ends a job whose number now belongs to another user's job, or to a job that brings nodes to another
// job.
func (c *Core) replaced(s *snapshot, j *job) bool {
	id := c.presentJob(j)
	if r := s.byID[id]; r == nil || r.UID == j.UID && c.byID[id] == j || j.busy {
		return false
	}
	c.logJob(j).Warn("slurmctld lost the job and reused its ID")
	c.cancelChain(j)
	c.end(j, slurmctl.Job{})
	return true
}

// disown removes the numbers of jobs that brought nodes if they belong to other jobs now.
func (c *Core) disown(s *snapshot) {
	maps.DeleteFunc(c.byID, func(id slurmctl.JobID, j *job) bool {
		r := s.byID[id]
		if r == nil || id == j.id() || slices.Contains(j.chain, id) || j.busy {
			return false
		}
		own, ours := parseHoldName(r.Name)
		return !ours || own.job != j.id() || !c.mayBring(r, j)
	})
}

// unread discards what was read of jobs that are not adopted, if their numbers belong to other users' jobs
// now.
func (c *Core) unread(s *snapshot) {
	replaced := func(id slurmctl.JobID) bool {
		return c.snapshot != nil && c.snapshot.byID[id] != nil && s.byID[id] != nil && c.snapshot.byID[id].UID != s.byID[id].UID
	}
	maps.DeleteFunc(c.asked, func(id slurmctl.JobID, _ *asked) bool { return replaced(id) })
	maps.DeleteFunc(c.scripts, func(id slurmctl.JobID, _ *script) bool { return replaced(id) })
	maps.DeleteFunc(c.refused, func(id slurmctl.JobID, _ refused) bool { return replaced(id) })
}
