package refit

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Outlived reports whether a Slurm job is an expander whose base job has ended or does not
// want it.
func Outlived(c *state.Core, s *state.Snapshot, r *slurmctl.Job) bool {
	if c.Config.Observes() || r.State == slurmctl.Completing || r.Ended() || !slurm.IsExpander(c, r) {
		return false
	}
	own, _ := state.ParseHoldName(r.Name)
	if plan.IsComing(c, own.Job) {
		return false // its job will soon be adopted again
	}
	if base := s.ByID[own.Job]; base != nil && !base.Ended() && adopt.SetAside(c, base.ID, base.SubmitTime) != "" {
		return false // the job keeps its nodes
	}
	if ofLetGo(c, s, r, own.Job) {
		return false
	}
	if j := c.ByID[own.Job]; j != nil && awaits(c, s, j, r, own) {
		return false
	}
	return slurm.IsSelf(c, r) || sameUser(c, s, r, own.Job)
}

// awaits reports whether a known base job may still use an expander.
func awaits(c *state.Core, s *state.Snapshot, j *state.Job, r *slurmctl.Job, own state.OwnName) bool {
	forgotten := r.State == slurmctl.Pending && c.Passed(s.Taken, r.SubmitTime.Add(adopt.StartWait)) // never released, because the sidecar was killed
	return j.Busy || j.Touched.After(s.Taken) || !j.Ending && j.Runs() && !forgotten && !forlorn(c, j, r.ID, own)
}

// sameUser reports whether a job of a user may be an expander of a base job. If not, it is another user's
// job that only looks like an expander.
func sameUser(c *state.Core, s *state.Snapshot, r *slurmctl.Job, id slurmctl.JobID) bool {
	if base := s.ByID[id]; base != nil && base.UID != r.UID {
		return false
	}
	known, ever := c.Known[id]
	return !ever || known.UID == r.UID // otherwise it is named after an ended job
}

// forlorn reports whether an expander was created for an offer that is over, or lost with the
// database. Such an expander would bring nodes beyond the job's plan.
func forlorn(c *state.Core, j *state.Job, id slurmctl.JobID, own state.OwnName) bool {
	return own.Step == LentStep && slices.Contains(j.Expanders, id) && OfferAt(j) == nil
}

// ofLetGo reports whether a companion belongs to a running job that was let go, is about to be, or was refused after the database
// was lost: it stays to that job's end.
func ofLetGo(c *state.Core, s *state.Snapshot, r *slurmctl.Job, id slurmctl.JobID) bool {
	base := s.ByID[id]
	if base == nil || c.ByID[id] != nil && !c.Drained() || base.Ended() || base.State == slurmctl.Pending || r.State == slurmctl.Pending {
		return false
	}
	return base.UID == r.UID && (request.IsLetGo(base.Comment) || c.Refused[id].ID != 0)
}
