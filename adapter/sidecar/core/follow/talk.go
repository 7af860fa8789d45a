package follow

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Callee returns the job that a call is about.
func Callee(c *state.Core, id uint32) (*state.Job, error) {
	j := c.ByID[slurmctl.JobID(id)]
	switch {
	case c.Twin != nil:
		return nil, api.Errorf(api.ErrUnavailable, "the sidecar changes nothing: another evoslurmd drives this cluster")
	case c.Snapshot == nil, plan.IsComing(c, slurmctl.JobID(id)): // the database may be outdated and incomplete
		return nil, api.Errorf(api.ErrUnavailable, "the sidecar has just started and has not seen %s yet", msg.JobNumber(id))
	case j == nil && c.Refused[slurmctl.JobID(id)].ID != 0:
		return nil, api.Errorf(api.ErrConflict, "%s is not driven by the sidecar, %s", msg.JobNumber(id), c.Refused[slurmctl.JobID(id)].Reason)
	case j == nil:
		return nil, api.Errorf(api.ErrNotFound, "%s is not an evolving job, or has ended", msg.JobNumber(id))
	}
	return j, nil
}

// mostRewrites is how often the sidecar rewrites a request that something else has overwritten.
const mostRewrites = 3

// before reports whether a job was requeued and has not come back to the step in its marker. It then
// needs its earlier steps, but the marker records only that they are over.
func before(j *state.Job, at *request.Reached) bool {
	return at != nil && (j.Record.State == slurmctl.Pending && at.Step > 1 || j.Runs() && at.Step > j.Step)
}

// checkWritten checks that a changed request is still in the job's comment. Slurmctld may have lost
// it in a crash, the sidecar may have been killed before writing it, or the job may have been requeued.
func checkWritten(c *state.Core, j *state.Job) {
	if len(j.Changes) == 0 || j.Unwritten || j.Rewrites >= mostRewrites || j.Record.Comment == j.SeenComment {
		return
	}
	j.SeenComment = j.Record.Comment
	if r, ok, err := plan.Mark(c, &j.Record); ok && err == nil && r.Updated == j.Changes[len(j.Changes)-1].ID && !before(j, r.Reached) {
		if j.CloseChange() { // this sidecar, or another one, ended before it knew
			c.Save(j)
		}
		return
	}
	j.Rewrites++
	j.WriteAgain()
}
