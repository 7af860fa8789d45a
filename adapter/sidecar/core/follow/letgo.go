package follow

import (
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// LetGo ends the sidecar's part in a job that has not ended: from now on it is Slurm's alone. A job keeps its companions;
// they are cancelled when it ends (Clean), or end by their own time limits.
func LetGo(c *state.Core, j *state.Job) {
	if refit.OfferAt(j) != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the job is let go")
	}
	if len(j.Expanders) > 0 && j.Mode.MergesGrowths {
		adopt.CancelBeside(c, "an expander", j.Expanders...)
	}
	c.Event(j, "let go", map[string]any{"step": j.Step, "nodes": slurmctl.CompressNodes(j.Nodes())})
	c.LogJob(j).WithField("nodes", slurmctl.CompressNodes(j.Nodes())).Info("let go: it is an ordinary job now")
	peak := j.Profile.Peak()
	if j.Mode.StepsAreJobs {
		peak = 0 // a link has its step's nodes
	}
	for _, id := range append([]slurmctl.JobID{j.BaseID()}, j.Chain...) {
		if r := c.Snapshot.ByID[id]; r != nil && !r.Ended() {
			shown := adopt.Stranger(r, adopt.LetGoWords)
			shown.Step, shown.Steps, shown.Drive, shown.Profile = j.Step, len(j.Profile), j.Drive, j.Profile.String()
			adopt.LeaveDrained(c, r, shown, j.Begin, peak)
		}
	}
	endWith(c, j, slurmctl.Job{}, func(*state.Core, *state.Job) {})
}

// letGoWithout reports whether a job was let go without the sidecar: its comment says so. A user who writes that gives up a
// queued job. A running one would keep nodes that are promised to others, so it counts only if the sidecar was down then.
func letGoWithout(c *state.Core, j *state.Job, r *slurmctl.Job) bool {
	if r == nil || j.Busy {
		return false
	}
	marked := request.IsLetGo(r.Comment)
	j.SawMark(marked)
	return marked && (c.Drained() || !j.Unmarked || !j.Runs() && r.State == slurmctl.Pending)
}
