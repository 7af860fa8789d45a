package act

import (
	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// undoChange undoes a change that Slurm refused.
func undoChange(c *state.Core, j *state.Job, why error) {
	if j.Undo.Job.Growing == nil { // else the change was made while a growth is under way, which goes on
		follow.GrowthFailed(c, j)
	}
	was := j.UndoChange()
	state.SetMode(c, j)
	refit.ChangeProfile(c, j)
	c.Save(j)
	c.StorePlan(j, was.Plan)
	c.Event(j, "change refused", map[string]any{"asked": was.Words, "why": why.Error()})
	for _, k := range c.Calling {
		if k.Of == j && k.Change != nil && k.Change.ID == was.ID {
			k.Refused = api.Errorf(api.ErrConflict, "Slurm refused it, and nothing has changed: %v", why)
		}
	}
}

// WriteRequest writes the changed request of a job to Slurm. If the database is lost, the sidecar
// reads the request from the job's comment.
func WriteRequest(c *state.Core, j *state.Job) {
	if j.Busy || !c.Work.Room() || !c.Work.RoomFor(j.UID) || !c.Due(c.Now, j.RetryAt) || j.State == row.Starting {
		return // ActOn tries again
	}
	r := &j.Record
	text, err := Rewritten(c, j)
	if err != nil {
		NotKept(c, j, err)
		return
	}
	u := slurmctl.JobUpdate{Comment: &text}
	if j.State == row.Queued {
		if n := j.Profile[0].Nodes; n != r.NumNodes {
			u.NumNodes = n
		}
		if need := LimitNeeded(c, j); r.TimeLimit != slurmctl.Unlimited && need > r.TimeLimit {
			u.TimeLimit = need
		}
	}
	do := msg.Update{Job: r.ID, Change: u}
	if u.NumNodes > 0 || u.TimeLimit > 0 { // limits of accounts and QOS do not apply to changes by root
		do.As = j.UID
	}
	c.Do(j, "change", j.Profile.String(), state.KindRewrite, do, state.Args{})
}

// SettleRewrite handles the outcome of writing a changed request.
func SettleRewrite(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	switch u := state.CommandOf[msg.Update](p).Change; {
	case o.Err == nil && u.Comment != nil:
		j.Written(u)
		c.Save(j)
	case o.Err == nil, state.Outage(o.Err):
	default:
		NotKept(c, j, o.Err)
	}
}

// Rewritten returns the comment of a job with its current request.
func Rewritten(c *state.Core, j *state.Job) (string, error) {
	return request.Rewrite(j.Record.Comment, func(r request.Request) request.Request {
		if r.Profile == nil { // the profile is in the script, with options that the marker lacks
			r.ExpandLimit, r.Drive = j.ExpandLimit, drivemode.Mode(j.Drive)
		}
		r.Moldable, r.Malleable = nil, nil
		if m := j.Malleable; m != nil {
			r.Malleable = &request.Malleable{Max: m.Max, Sizes: m.Sizes, Grace: m.Grace, Speedup: m.Speedup}
		}
		r.Profile, r.Updated, r.Reached = j.Profile, j.Changes[len(j.Changes)-1].ID, nil
		if j.Runs() {
			r.Profile = j.Profile[j.Step-1:]
			if r.Malleable != nil {
				r.Malleable.Max = r.Malleable.Max[j.Step-1:]
			}
			r.Reached = &request.Reached{Step: j.Step, After: max(j.StepStarted.Unix()-j.Started.Unix(), 0),
				First: j.Profile[0].Nodes, Peak: j.Profile[:max(j.Step-1, 1)].Peak(), Began: max(c.WallSecond(j.Record.StartTime.Unix()), 0)}
		}
		return r
	})
}

// NotKept handles that Slurm does not accept a job's changed request.
func NotKept(c *state.Core, j *state.Job, why error) {
	j.NotWritten()
	if j.Undo != nil {
		undoChange(c, j, why)
		return
	}
	j.Remark("Slurm does not keep its changed request: " + why.Error())
	c.LogJob(j).WithError(why).Warn("cannot save a changed request in Slurm; it would be lost with the database")
}
