package core

import (
	"strings"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// expanderMark is in the comment of every expander, unless a site's plugins have
// overwritten that.
const expanderMark = "evox:v1"

// isExpander reports whether a Slurm job was made by the sidecar to bring nodes. It is
// named as one, and has the mark; or, where the mark is gone, it belongs to the sidecar
// or to the user of the evolving job that it is named after. Nobody gains by forging
// one: mayBring, clean.
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
