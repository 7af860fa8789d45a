package refit

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// A malleable application may give back lent nodes voluntarily (evosctl shrink). That does not
// change its request, and its step continues. The sidecar handles it as an accepted request to
// shrink, and carries it out exactly once even after a restart. It then makes the job no offer for
// a while.

// OwnAccord is the reason recorded for such a request.
const OwnAccord = "the application asked for it"

// The malleability manager runs once a cycle, after planning. It checks lent and free nodes in this order:
//
//  1. It demands lent nodes back in time if they are planned for another evolving job.
//  2. With precedence to waiting applications (PWA), pending stock jobs count as waiting. The manager
//     demands back the lent nodes that they could use, and does not lend the free nodes that they could
//     use, even if these are not enough for them yet. So a stock job starts when it would without
//     malleable jobs, plus the grace of the jobs that give way.
//  3. It offers free nodes that no other job will need for a while, as the policy distributes them.
//
// Waiting evolving jobs are in the plan, and so in 1.

// Approach returns which jobs have precedence.
func Approach(c *state.Core) malleable.Approach { return c.Config.Malleable.Precedence() }

// GivesWay reports whether jobs that wait have precedence over a malleable job that runs. They always have over best-effort jobs.
func GivesWay(c *state.Core, j *state.Job) bool {
	return j.BestEffort() || Approach(c) == malleable.PWA
}
