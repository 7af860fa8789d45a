package core

import (
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// expanderMark is the text in the comment of every expander, unless a site's plugins have
// overwritten the comment.
const expanderMark = "evox:v1"

// isExpander reports whether the sidecar created a Slurm job to bring nodes. The job has the name
// of an expander, and the mark. If the mark is gone, the job must belong to the sidecar, or to the
// user of the evolving job in its name. Forging an expander gains nothing: see mayBring and
// clean.
func (c *Core) isExpander(r *slurmctl.Job) bool {
	own, ours := parseHoldName(r.Name)
	if !ours {
		return false
	}
	if strings.Contains(r.Comment, expanderMark) || c.isSelf(r) {
		return true
	}
	if j := c.byID[own.job]; j != nil {
		return j.UID == r.UID && own.step <= len(j.Profile)
	}
	known, ever := c.known[own.job]
	return ever && known.UID == r.UID && own.step <= known.Steps && !r.SubmitTime.Before(known.Submitted)
}
