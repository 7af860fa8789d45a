package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
)

// Holds keep stock jobs from nodes. No stock job may start later because of them by more than its
// budget (max_delay). A job is held up if Slurm would start it now without holds: it is
// eligible, its nodes are idle, and no job before it in Slurm's order needs them. The core remembers
// the first such moment. If the holds delay the planned start beyond that moment plus the budget,
// the cheapest promises in its way lapse (package delay). Until then, no queued job is planned in
// its way either.
//
// Evolving jobs also have their places in that order: a queued job with its first step, and a job
// that waits for a growth with the nodes that it lacks. So a growth that is due comes before stock jobs
// behind it, with or without a hold.

const (
	// MostOrdered is how many waiting jobs are considered, stock.MostOfUser how many of one user.
	MostOrdered = 400
	// MostHeldUp is how many jobs are remembered.
	MostHeldUp = 1000
	// StartPatience is how long a job may wait on nodes that no hold keeps from it. After that, Slurm has
	// another reason not to start it, and the job has no budget any more.
	StartPatience = 10 * time.Minute
	// DistrustFor is how long further jobs of a user have no budget, if a promise lapsed for such a job.
	DistrustFor = time.Hour
	// DelaysAgain is how long computed delays stay valid at most, even if nothing happens.
	DelaysAgain = time.Minute
)

// KeepsNodes reports whether nodes are kept for a job that has not started yet: holds keep it from starting, or did
// so before, and Slurm has not looked since.
func KeepsNodes(c *state.Core, h *state.HeldUp, now time.Time) bool {
	return !h.Spent && (h.Now || !h.Free.IsZero() || IsFreed(c, h, now)) && len(h.Nodes) > 0
}

// KeepsAny reports whether any of these nodes are kept for stock jobs before a Unix second.
func KeepsAny(c *state.Core, nodes []string, until int64) bool {
	for _, h := range c.Delays.Jobs {
		if KeepsNodes(c, h, c.Now) && h.From < until && len(msg.Common(nodes, h.Nodes)) > 0 {
			return true
		}
	}
	return false
}

// IsFreed reports whether promises recently gave way to the job.
func IsFreed(c *state.Core, h *state.HeldUp, now time.Time) bool {
	return !h.Freed.IsZero() && !c.Passed(now, h.Freed.Add(StartPatience))
}

// KeptFor returns the Unix seconds from which, and until which, nodes and licences are kept for a job.
func KeptFor(c *state.Core, h *state.HeldUp, now int64) (from, until int64) {
	from = c.Until(now, h.From)
	return from, h.End + from - h.From + stock.UntilLook
}

// keepLicenses adds the licences of the jobs for which nodes are kept: without them, Slurm would not start these jobs.
func keepLicenses(c *state.Core, o *msg.Occupancy, s *state.Snapshot) {
	for _, id := range slices.Sorted(maps.Keys(c.Delays.Jobs)) {
		if h, r := c.Delays.Jobs[id], s.ByID[id]; r != nil && r.Licenses != "" && KeepsNodes(c, h, c.Now) {
			from, until := KeptFor(c, h, s.Taken.Unix())
			slurm.KeepLicenses(o, r, from, until)
		}
	}
}

// withoutHeldUp removes jobs from a list if nodes are already kept for them (addKeptFor).
func withoutHeldUp(c *state.Core, list []slurm.Candidate) []slurm.Candidate {
	if len(c.Delays.Jobs) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(cand slurm.Candidate) bool {
		h := c.Delays.Jobs[cand.Record.ID]
		return cand.Job == nil && h != nil && KeepsNodes(c, h, c.Now)
	})
}

// LongestHold limits the holds of jobs without a time limit.
const LongestHold = 365 * 24 * 3600

// LimitOfAs does what LimitOf does, for a given alternative of a moldable job.
func LimitOfAs(c *state.Core, j *state.Job, i, choice int) int64 {
	r := &j.Record
	if j.Mode.StepsAreJobs && i < len(j.Chain) && c.Snapshot != nil && c.Snapshot.ByID[j.Chain[i]] != nil {
		r = c.Snapshot.ByID[j.Chain[i]]
	}
	return min(slurm.Seconds(limitOnceStarted(j, r, choice, i)), LongestHold)
}
