package refit

import (
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
)

// FitSafely does what fitStrictly does, also for a job with a claim: none of its steps grows before
// that is safe.
func FitSafely(c *state.Core, s *state.Snapshot, j *state.Job, t *state.Target, now int64, f Fitting, beyond bool) rest {
	for {
		r := fitStrictly(c, s, j, t, now, f, beyond)
		if r.Unfit != "" || t.Claim == 0 {
			return r
		}
		bad := int64(0)
		for k := t.Step; k < len(r.Plan) && bad == 0; k++ {
			if len(r.Plan[k].Nodes) > len(t.Nodes()) && !plan.SafeWith(c, s, t.Job, max(r.Plan[k].Start, now), r.Plan[k].Nodes) {
				bad = max(r.Plan[k].Start, now)
			}
		}
		if bad == 0 {
			return r
		}
		next := planner.Forever
		for _, other := range plan.Claimants(c, s, t.Job, bad) {
			next = min(next, other.Until)
		}
		if next == planner.Forever {
			return rest{Unfit: state.Unsafe}
		}
		f.notBefore = next
	}
}

// moveUp replans a job that waits for a requested growth, or for a chain's next link, if it can
// have the nodes sooner because other jobs ended early.
func moveUp(c *state.Core, s *state.Snapshot, j *state.Job, now int64) {
	copied := *j
	t := &state.Target{Job: &copied, Wait: planner.MaxDuration}
	r := FitSafely(c, s, j, t, now, Fitting{Around: AroundOf(c, s, j, nil), Strict: true, Wait: t.Wait}, false)
	if r.Unfit == "" && r.Plan[j.Step].Start+OverrunQuantum <= j.Next().Start {
		c.StorePlan(j, r.Plan)
	}
}

// Plan asks for a plan of all queued jobs around what is certain, in order of priority.
func Plan(c *state.Core, s *state.Snapshot) {
	c.Planning = true
	c.Emit(msg.Plan{Problem(c, s)})
}

// Problem returns the problem of the current queue.
func Problem(c *state.Core, s *state.Snapshot) *msg.Problem {
	now := s.Taken.Unix()
	o := Occupied(c, s, now, nil)
	addHeldUp(c, o, s)
	return plan.ProblemOf(c, s, o, plan.Candidates(c, s, now))
}
