package state

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Job is an evolving job with what the core knows about it. Each group of fields has one owner: the room that
// writes it. Other rooms read it, and say by verbs what happened (life.go, change.go, and beside each group). Only
// verbs write what the database keeps, in row.Job. TestOwners enforces this.
type Job struct {
	*row.Job
	Mode drivemode.Behaviour // what its drive mode means on its site

	Adopted
	Standing
	Placement
	Sight
	Suspension
	Promise
	Holding
	Lending
	Actions
	Limits
	Changing
	Shown
	Waits
}

// Restored returns a job of the database, with its past steps and its plan.
func Restored(values *row.Job, past []row.Span, plan []msg.PlannedStep) *Job {
	return &Job{Job: values, Sight: Sight{Past: past}, Placement: Placement{Plan: plan, ChoiceLogged: true}}
}

func (j *Job) BaseID() slurmctl.JobID { return slurmctl.JobID(j.SlurmID) }

// Runs reports whether the job has begun and not ended: its coming steps are promised.
func (j *Job) Runs() bool { return j.State == row.Running || j.State == row.Waiting }

func (j *Job) Last() bool { return j.Step == len(j.Profile) }

// Next returns the planned step after the current one, or nil after the last step or without a plan.
func (j *Job) Next() *msg.PlannedStep {
	if j.Step >= len(j.Plan) {
		return nil
	}
	return &j.Plan[j.Step]
}

// Planned lists all nodes of the current and coming steps.
func (j *Job) Planned() []string {
	seen := msg.Set{}
	var all []string
	for _, step := range j.Coming() {
		for _, n := range step.Nodes {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	return all
}

// Coming returns the plan from the current step on.
func (j *Job) Coming() []msg.PlannedStep { return j.Plan[min(max(j.Step-1, 0), len(j.Plan)):] }

// Expected returns the second at which the current step ends if the application keeps to its profile.
func (j *Job) Expected() int64 {
	return j.StepStarted.Unix() + j.Profile[j.Step-1].Duration
}

// Due returns the time of the job's coming start or growth, or zero if there is none.
func (j *Job) Due() time.Time {
	switch {
	case j.State == row.Queued && len(j.Plan) > 0:
		return time.Unix(j.Plan[0].Start, 0)
	case j.State == row.Waiting && j.Next() != nil:
		return time.Unix(j.Next().Start, 0)
	}
	return time.Time{}
}

// Why returns every reason that the job shows for its current state.
func (c *Core) Why(j *Job) string {
	parts := []string{j.Reason().Words(), j.Note, ""}
	if j.Unheld != nil && j.Kept == nil {
		parts[2] = j.Unheld.Words(c)
	}
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), "; ")
}
