package act

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Up to Slurm 23.11, scancel reads the whole queue before it sends a signal, so that a warning costs slurmctld as much as a
// poll. One command therefore warns all jobs that wait for a warning, of any user, and the next one comes when slurm.share
// allows it (pace.MayWarn). No user's warnings wait for those of another one.

const (
	warnings = "warnings" // key of the task
	// warnAgain is the time until signals are sent again that failed.
	warnAgain = 30 * time.Second
	// mostWarned bounds the Slurm jobs that one command signals.
	mostWarned = 500
)

// warn has the site's signal sent to all Slurm jobs of a job: to its script, its children and its steps, including those of
// companions. It returns false if the job must wait for the next command, or the site sends no signal.
func warn(c *state.Core, j *state.Job) bool {
	if c.Config.OverrunSignal == "" || len(c.Work.Warn)+1+len(j.Held) > mostWarned && len(c.Work.Warn) > 0 || !c.Free(warnings) || !pace.MayWarn(c) {
		return false
	}
	c.Work.Warn = append(c.Work.Warn, slurmIDs(j)...)
	return true
}

// slurmIDs returns the IDs of all Slurm jobs of a job.
func slurmIDs(j *state.Job) []slurmctl.JobID {
	ids := []slurmctl.JobID{j.Record.ID}
	for _, p := range j.Held {
		if p.ID != j.Record.ID {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// SendWarnings sends the signals that [Act] asked for.
func SendWarnings(c *state.Core) {
	if ids := c.Work.Warn; len(ids) > 0 {
		c.Work.Warn = nil
		pace.Warns(c)
		c.Ask(nil, warnings, state.KindWarn, msg.Task{Command: msg.Signal{Jobs: ids, Name: c.Config.OverrunSignal}}, state.Args{})
	}
}

// SettleWarn handles the outcome of warnings. Jobs whose signal failed are warned again, if they still exceed their step; a
// demand is not repeated, because at its deadline the nodes go anyway.
func SettleWarn(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err == nil {
		return
	}
	c.Work.Retry[warnings] = c.Now.Add(warnAgain)
	failed, ok := o.Result.([]slurmctl.JobID)
	if !ok {
		failed = state.CommandOf[msg.Signal](p).Jobs
	}
	for _, j := range c.Active {
		if slices.ContainsFunc(slurmIDs(j), func(id slurmctl.JobID) bool { return slices.Contains(failed, id) }) {
			j.WarnAgain()
			c.LogJob(j).WithError(o.Err).Warn("cannot signal the job, will retry")
		}
	}
}
