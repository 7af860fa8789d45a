package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// What happens in the life of a job changes several groups of its fields at once. These verbs say what
// happened. They change the job, and nothing else: the caller saves it, logs and adds events.

// Launch records that one of the job's Slurm jobs was released to start.
func (j *Job) Launch(id slurmctl.JobID, st row.State) { j.State, j.LetGo = st, id }

// Parked records that a released Slurm job of the job was parked again.
func (j *Job) Parked(st row.State) { j.State, j.LetGo = st, 0 }

// Configures records that Slurm has given the job nodes that are not up yet.
func (j *Job) Configures() { j.Configuring, j.State = true, row.Starting }

// NotConfigured records that some of these nodes did not come up, and the job is queued again.
func (j *Job) NotConfigured() { j.Configuring, j.State, j.Held = false, row.Queued, nil }

// Start records that Slurm started the job at a time; begun is that time in Unix seconds by Slurm's clock.
func (j *Job) Start(r *slurmctl.Job, at time.Time, begun int64) {
	j.State, j.Step, j.BatchHost, j.Configuring = row.Running, 1, r.BatchHost, false
	if j.Guess > 0 && j.Script != "" && j.Mode.ScriptSpansSteps { // slurmctld may report another batch host by now, see pinned
		j.BatchHost = j.Script
	}
	j.Started, j.Begun = at, begun
	j.InStep(at)
	j.Suspended, j.SuspendedFrom, j.Recount = j.SuspendedBefore, time.Time{}, j.Guess > 0 || r.State == slurmctl.Suspended
	j.Forgone, j.UnheldTold = "", 0
}

// BeginStep records that the job has the nodes of its next step since a time.
func (j *Job) BeginStep(at time.Time) {
	j.Step, j.Release = j.Step+1, nil
	if j.Guess > 0 {
		j.Guessed(j.Step)
	}
	j.InStep(at)
}

// InStep records that a step has begun, perhaps by another sidecar.
func (j *Job) InStep(at time.Time) {
	j.State, j.StepStarted, j.StepEnded = row.Running, at, time.Time{}
	j.Cause, j.Kept, j.KeptTimes = Reason{}, nil, 0
	j.GrowthSettled()
	j.Warned, j.Signalled, j.Overdue, j.NeedsReplan, j.YieldedTo = false, false, 0, false, 0
}

// Guessed records that the step is a guess, and at least this one; 0: the application named it.
func (j *Job) Guessed(lowest int) { j.Guess = lowest }

// EndStep records that the current step has ended, and the next one's nodes are still to come.
func (j *Job) EndStep(at time.Time) { j.State, j.StepEnded, j.Overdue = row.Waiting, at, 0 }

// Requeue records that Slurm has put the job back into its queue. The job starts over, no sooner than at a time.
func (j *Job) Requeue(again time.Time) {
	j.Unopened = j.Unopened || j.Step > 1 // once resized, always: what opens a row is a resize
	j.State, j.Step, j.Held, j.Ending, j.RetryAt = row.Queued, 0, nil, false, again
	j.Started, j.Begun, j.StepStarted, j.StepEnded = time.Time{}, 0, time.Time{}, time.Time{}
	j.Suspended, j.SuspendedFrom = 0, time.Time{}
	j.Guess, j.Reached, j.Script, j.SuspendedBefore = 0, 0, "", 0 // of the previous run
	j.SeenComment, j.AccrualKnown = "", false                     // its marker may only record that the earlier steps are over
	if j.Groups == nil {
		j.Asked = nil
	}
	if j.Progress != nil { // the measurements remain valid
		j.Progress = &malleable.Progress{Runs: j.Progress.Runs}
	}
}

// RequeueStep records that Slurm has put the current link of a chain back into its queue. Its step starts over,
// no sooner than at a time.
func (j *Job) RequeueStep(now, again time.Time) {
	j.State, j.Step, j.Held, j.StepStarted, j.StepEnded = row.Waiting, j.Step-1, nil, now, now
	j.Suspended, j.SuspendedFrom = 0, time.Time{}
	j.LetGo, j.Readied, j.Overdue, j.Warned, j.Signalled = 0, 0, 0, false, false
	j.RetryAt = again
}

// Restarted records that the job was read from the database. It is settled if it had passed a whole cycle before,
// and lapsed if its coming steps have no promise.
func (j *Job) Restarted(settled, lapsed bool) {
	j.Recount, j.Settled, j.NeedsReplan = true, settled, lapsed
}

// Consists records which Slurm jobs the database has of the job: the links of a chain, or the parts that it holds.
func (j *Job) Consists(of []msg.Part) {
	if !j.Mode.StepsAreJobs {
		j.Held = of
		return
	}
	for _, p := range of {
		j.Chain = append(j.Chain, p.ID)
	}
}

// AgesFrom records that Slurm considers the queued job again, since a time.
func (j *Job) AgesFrom(now time.Time) {
	if j.Ineligible = false; now.After(j.Begin) {
		j.Begin = now
	}
}

// Forsake records that the promise for the coming steps is given up. They are planned again when the step ends.
func (j *Job) Forsake() { j.Extend, j.NeedsReplan = false, true }

// Forgo records why it was given up.
func (j *Job) Forgo(why string) { j.Forgone, j.ForgoneIn = why, max(j.Step, 1) }

// RankAsInSlurm takes over the job's priority in Slurm.
func (j *Job) RankAsInSlurm() { j.Priority = j.Record.Priority }

// Saw records what Slurm shows of the job. If its marker or script binds it to nodes, Slurm's own list of required
// nodes does not count.
func (j *Job) Saw(r *slurmctl.Job, excluded []string) {
	j.Record = *r
	j.Record.ExcNodes = excluded
	if j.Bound != "" {
		j.Record.ReqNodes = j.May
	}
}

// LimitRaised records that the time limits of the job's parts were raised; base is the first part.
func (j *Job) LimitRaised(base msg.Limit) {
	j.Extend = false
	if r := &j.Record; base.Job == r.ID && !r.EndTime.IsZero() {
		r.TimeLimit, r.EndTime = base.Limit, r.EndTime.Add(base.Limit-r.TimeLimit)
	}
}

// CountAnew forgets the suspensions: Slurm counts them separately for each link of a chain.
func (j *Job) CountAnew() { j.Suspended, j.SuspendedFrom = 0, time.Time{} }
