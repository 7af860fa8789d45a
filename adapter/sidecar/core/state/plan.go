package state

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Placement holds a job's plan and its chosen alternative. Owner: plan.
type Placement struct {
	Priority     uint64                 // planning priority; once the job runs, its priority in Slurm
	Plan         []msg.PlannedStep      // one per step, or none without a plan; replaced, never modified
	PlacedIn     placedIn               `codec:"-"` // cached positions of its nodes in a pool
	Unfit        string                 // why there is no plan
	CouldStart   int64                  // since when it could start on more leaf switches than it asks for; 0: not yet
	Options      []msg.PlannedOption    // what its alternatives would give, in the last plan
	ChoiceLogged bool                   // the event log has the chosen alternative
	RefusedAs    map[int]Refusal        // by alternative
	Marked       map[slurmctl.JobID]int // the alternative, from 1, last written into the comment of each of its Slurm jobs
}

// RunsIn records the reservation of the site in which the job is to run; "": none.
func (j *Job) RunsIn(reservation string) { j.Reservation = reservation }

// AwaitAim records since when a job could have started without its aim, and the start that it waits for; 0: none.
func (j *Job) AwaitAim(since, start int64) { j.AimSince, j.AimStart = since, start }

// Suppose has the job follow a plan until the returned function is called.
func (p *Placement) Suppose(plan []msg.PlannedStep) (back func()) {
	was := p.Plan
	p.Plan = plan
	return func() { p.Plan = was }
}

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

// Prospect is a job that is not submitted yet and has asked for a place. It is planned behind all jobs that were there before. Owner: talk.
type Prospect struct {
	*Job                   // as it would be adopted
	Until   time.Time      // until when the place is kept
	Key     string         // of the question
	After   slurmctl.JobID // the last job that was there when it was asked
	Made    bool           // a plan was made, or there can be none
	Offer   *api.Placement `codec:"-"` // cached answer by the plan; nil: none
	Offered time.Time      `codec:"-"` // when the snapshot was taken that it is by
}
