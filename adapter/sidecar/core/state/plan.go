package state

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// A job with a claim (--max-nodes) may grow up to it on demand, and waits for that if necessary. So
// that jobs never wait for each other's nodes, they begin and grow only if the resulting state is
// safe (package claims; the proof is in docs/claims.md). All other jobs are planned as if the jobs with
// claims kept their nodes up to their time limits.

// Unsafe says why a job with a claim must wait.
const Unsafe = "waits for other jobs with claims: all could come to wait for each other's nodes"

// placedIn caches where in a pool the nodes of a job's current and coming steps are. It is valid while the
// plan stays, and must not be modified.
type placedIn struct {
	Plan   []msg.PlannedStep
	Pool   []int
	Layout int // layout of the snapshot
	At     []int
}

// StorePlan sets a job's plan, and marks it for saving if it changed.
func (c *Core) StorePlan(j *Job, plan []msg.PlannedStep) {
	if slices.EqualFunc(j.Plan, plan, func(a, b msg.PlannedStep) bool {
		return a.Start == b.Start && a.End == b.End && (msg.Same(a.Nodes, b.Nodes) || slices.Equal(a.Nodes, b.Nodes))
	}) {
		return
	}
	j.Plan = plan
	c.Unsaved[j] = true
	c.Tries.Changed++
}
