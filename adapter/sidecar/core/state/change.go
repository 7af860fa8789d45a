package state

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Change makes a planned change of the job's request. Until Slurm has it, it can be undone.
func (j *Job) Change(t *Target, id string, now time.Time) {
	was := Restorable{Job: *j.Job, Reached: j.Reached, Release: j.Release, Kept: j.Kept, Overdue: j.Overdue, NeedsReplan: j.NeedsReplan, Plan: j.Plan, ID: id, Words: t.Words}
	ended := 0
	if j.Reached = j.Step; t.Ends {
		ended = j.Step
		j.EndStep(now)
		j.Release = t.Release
	}
	if t.GoesBehind {
		j.Behind = now
	}
	j.Profile, j.Moldable, j.Malleable = t.Profile, nil, t.Malleable
	j.Changed(row.Change{ID: id, Step: ended, Open: true})
	j.Cause, j.Kept, j.Overdue, j.NeedsReplan, j.Warned, j.Signalled, j.UnheldTold = Reason{}, nil, 0, false, false, false, 0
	j.Extend, j.Unwritten, j.Undo = j.Runs(), true, &was
	recall(j, t, &was.Job)
}

// recall records what is undone if the growth of a target fails, or as it is since a target without a growth.
func recall(j *Job, t *Target, was *row.Job) {
	g := row.Growing{Profile: was.Profile, Postpones: t.Later}
	switch before := was.Growing; {
	case t.Grown > 0:
		if was.Malleable != nil {
			g.Max = was.Malleable.Max
		}
	case !GrowthUndone(was, j.Step):
		j.Growing = nil
		return
	default: // other coming steps are asked for while the job waits
		g.Profile, g.Postpones = slices.Concat(before.Profile[:j.Step], j.Profile[j.Step:]), before.Postpones
		if j.Malleable != nil {
			g.Max = j.Malleable.Max
		}
	}
	j.Growing = &g
}

// GrowthUndone reports whether a job in a step has a growth that can be undone.
func GrowthUndone(j *row.Job, step int) bool {
	return j.Growing != nil && len(j.Growing.Profile) >= step
}

// UndoGrowth gives a job in a step the profile from before its growth, which has failed. The step lasts at least until now.
func UndoGrowth(j *Job, now time.Time) {
	g := j.Growing
	j.Profile = slices.Clone(g.Profile)
	current := &j.Profile[j.Step-1]
	current.Duration = max(current.Duration, now.Unix()-j.StepStarted.Unix())
	if j.Malleable != nil {
		m := *j.Malleable
		m.Max = g.Max
		j.Malleable = &m
	}
	j.Unwritten = true
}

// UndoChange undoes the change that Slurm refused. It returns what the job is again; its plan is not restored.
func (j *Job) UndoChange() *Restorable {
	was := j.Undo
	j.Undo = nil
	*j.Job = was.Job
	j.Cause = Reason{}
	j.Reached, j.Release, j.Kept, j.Overdue, j.NeedsReplan = was.Reached, was.Release, was.Kept, was.Overdue, was.NeedsReplan
	return was
}

// Written records that Slurm has the changed request.
func (j *Job) Written(u slurmctl.JobUpdate) {
	j.CloseChange()
	j.Unwritten, j.Undo, j.Record.Comment, j.SeenComment = false, nil, *u.Comment, "" // even one seen before is searched: slurmctld may lose this one
	Wrote(&j.Record, u)
}

// GrowthSettled records that the job has the nodes of its growth, or that the growth has failed.
func (j *Job) GrowthSettled() { j.Growing = nil }

// NotWritten records that Slurm does not accept the changed request.
func (c *Changing) NotWritten() { c.Unwritten = false }

// WriteAgain records that Slurm has lost the changed request.
func (c *Changing) WriteAgain() { c.Unwritten = true }

// ReleaseByPlan forgets which nodes the application would free.
func (c *Changing) ReleaseByPlan() { c.Release = nil }

// FoundIn records the step that a running job's marker names.
func (c *Changing) FoundIn(step int) { c.Reached = step }

// Wrote records in a job's record what a command has changed in Slurm. A site's plugins may have changed the
// comment, so that is taken over at the next poll.
func Wrote(r *slurmctl.Job, u slurmctl.JobUpdate) {
	if u.NumNodes > 0 {
		r.NumNodes = u.NumNodes
	}
	if u.TimeLimit > 0 {
		r.TimeLimit = u.TimeLimit
	}
	if !u.StartTime.IsZero() {
		r.StartTime = u.StartTime
	}
	if u.Reservation != nil {
		r.Reservation = *u.Reservation
	}
}

// Copy returns a copy of the job that shares nothing that changes. A copy has no change to undo.
func (j *Job) Copy() *Job {
	n, values := *j, *j.Job
	n.Job = &values
	values.Moldable, values.Malleable, values.Progress = msg.CopyOf(j.Moldable), msg.CopyOf(j.Malleable), msg.CopyOf(j.Progress)
	n.Kept, n.Unheld, n.Undo = msg.CopyOf(j.Kept), msg.CopyOf(j.Unheld), nil
	n.Shunned, n.RefusedIn, n.RefusedAs, n.Marked, n.Forbidden = maps.Clone(j.Shunned), maps.Clone(j.RefusedIn), maps.Clone(j.RefusedAs), maps.Clone(j.Marked), maps.Clone(j.Forbidden)
	return &n
}
