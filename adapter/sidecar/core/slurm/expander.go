package slurm

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ExpanderMark is the text in the comment of every expander.
const ExpanderMark = request.ExpanderMark

// ExpanderComment returns the comment of an expander: the mark, the job that it belongs to, and whether it will be merged.
func ExpanderComment(base slurmctl.JobID, step int, merge bool) string {
	comment := fmt.Sprintf("%s job %d step %d", ExpanderMark, base, step)
	if merge {
		comment += request.MergeMark
	}
	return comment
}

// IsCompanion reports whether a Slurm job runs, and has the mark of an expander that will not be merged.
func IsCompanion(r *slurmctl.Job) bool {
	return (r.State == slurmctl.Running || r.State == slurmctl.Suspended) && strings.Contains(r.Comment, ExpanderMark) && !strings.Contains(r.Comment, request.MergeMark)
}

// IsExpander reports whether the sidecar created a Slurm job to bring nodes. The job has the name
// of an expander, and the mark. If the mark is gone, the job must belong to the sidecar, or to the
// user of the evolving job in its name. Forging an expander gains nothing: see MayBring and
// clean.
func IsExpander(c *state.Core, r *slurmctl.Job) bool {
	own, ours := state.ParseHoldName(r.Name)
	if !ours {
		return false
	}
	if strings.Contains(r.Comment, ExpanderMark) || IsSelf(c, r) {
		return true
	}
	if j := c.ByID[own.Job]; j != nil {
		return j.UID == r.UID && own.Step <= len(j.Profile)
	}
	known, ever := c.Known[own.Job]
	return ever && known.UID == r.UID && own.Step <= known.Steps && !r.SubmitTime.Before(known.Submitted)
}

// IsSelf reports whether the sidecar itself submitted the job, in its own name.
func IsSelf(c *state.Core, r *slurmctl.Job) bool { return r.User == c.Site.User }
