package follow

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// BeginStep is called once the job has the nodes of its next step.
func BeginStep(c *state.Core, j *state.Job, at time.Time) {
	planned := msg.PlannedStep{Start: at.Unix()}
	if next := j.Next(); next != nil {
		planned = *next
		plan := slices.Clone(j.Plan) // actual times; the rest is replanned, except for a chain
		plan[j.Step-1].End = max(at.Unix(), plan[j.Step-1].Start)
		plan[j.Step].Start = plan[j.Step-1].End
		for i := j.Step; i < len(plan); i++ {
			plan[i].Start = max(plan[i].Start, plan[i-1].End)
			plan[i].End = max(plan[i].End, plan[i].Start)
		}
		c.StorePlan(j, plan)
	} else {
		c.StorePlan(j, nil) // Slurm began a chain's link by itself: see FollowPlans
	}
	late := max(at.Sub(msg.Later(time.Unix(planned.Start, 0), j.StepEnded)), 0)
	j.BeginStep(at)
	c.Save(j)
	c.SaveParts(j)
	recordAllocation(c, j, at)
	c.Event(j, "step begun", map[string]any{"step": j.Step, "planned": c.WallSecond(planned.Start), "nodes": slurmctl.CompressNodes(j.Nodes())})
	c.LogJob(j).WithField("nodes", slurmctl.CompressNodes(j.Nodes())).WithField("late", late.Seconds()).Info("step begun")
	if c.Snapshot != nil && planned.Start != at.Unix() && (!j.Mode.StepsAreJobs || at.Unix() > planned.Start+slurm.Margin(c)) {
		refit.Refit(c, c.Snapshot, j, c.Now.Unix(), "the step began at another time than planned")
	}
	if c.Snapshot != nil {
		refit.Suit(c, c.Snapshot, j, c.Now.Unix())
	}
	refit.Notify(c, j)
}

// configures is called while the nodes that Slurm has given a job are not up yet. The job has not begun, and
// its clock does not run.
func configures(c *state.Core, s *state.Snapshot, j *state.Job) {
	if j.Runs() { // it was requeued between two polls
		requeued(c, j)
	}
	observeHeld(c, s, j)
	if j.Configuring && j.State == row.Starting {
		return
	}
	j.Configures()
	c.Save(j)
}

// notConfigured is called when a job is queued again because some of its nodes did not come up. It is
// replanned for when Slurm lets it begin, about two minutes after a requeue.
func notConfigured(c *state.Core, j *state.Job, r *slurmctl.Job) {
	why := "its nodes did not come up: Slurm has put it back into the queue"
	j.NotConfigured()
	planWhole(c, j)
	if until := r.StartTime; until.After(c.Now) && until.Sub(c.Now) < mostAgain {
		j.KeepBack(&state.KeptBack{Limit: r.Reason, Text: why, Again: until})
	}
	c.Save(j)
	c.SaveParts(j)
	c.Event(j, "nodes did not come up", map[string]any{"reason": r.Reason})
	c.LogJob(j).Warn(why)
}
