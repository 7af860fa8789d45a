package core

import (
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Where slurmctld has crashed it may have forgotten a job that was submitted seconds before, and has
// given its number to the next one. That is certain where the user is another one, no job's ever changes, or
// where the next one brings nodes to another job. All else may be changed by users, or is when a job is
// requeued, the time of its submission too.

// in is one of the job's Slurm jobs as a snapshot shows it.
func (j *job) in(s *snapshot, id slurmctl.JobID) *slurmctl.Job {
	if r := s.byID[id]; r != nil && r.UID == j.UID {
		return r
	}
	return nil
}

// replaced ends a job whose number is another user's job's, or that of one that brings nodes to another job.
func (c *Core) replaced(s *snapshot, j *job) bool {
	id := c.presentJob(j)
	if r := s.byID[id]; r == nil || r.UID == j.UID && c.byID[id] == j || j.busy {
		return false
	}
	c.logJob(j).Warn("slurmctld has forgotten the job, and given its number to another one")
	c.cancelChain(j)
	c.end(j, slurmctl.Job{})
	return true
}

// disown forgets the numbers of jobs that brought nodes and that are others' by now.
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

// unread forgets what was read of jobs that are not adopted, likewise.
func (c *Core) unread(s *snapshot) {
	replaced := func(id slurmctl.JobID) bool {
		return c.snapshot != nil && c.snapshot.byID[id] != nil && s.byID[id] != nil && c.snapshot.byID[id].UID != s.byID[id].UID
	}
	maps.DeleteFunc(c.asked, func(id slurmctl.JobID, _ *asked) bool { return replaced(id) })
	maps.DeleteFunc(c.scripts, func(id slurmctl.JobID, _ *script) bool { return replaced(id) })
	maps.DeleteFunc(c.refused, func(id slurmctl.JobID, _ refused) bool { return replaced(id) })
}
