package hold

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The nodes of a growth are promised to a job that keeps to its profile. Once a step overruns by more than
// grace, the promise lapses: the sidecar holds nothing for the coming steps, and other jobs may have the
// nodes. The plan then ends with the current step, which is also how the database records it. When the job
// ends its step, the sidecar replans the rest.
//
// A planned step may last longer than its profile says (expand limits). An application that goes on until then
// is not late, since no other job waits for it. The later of two times counts: the profile's end, and the
// plan's end before the step exceeded it.
//
// A promise also lapses when an operator cancels the holds to use the nodes for something else, and when it
// cannot be kept beside the plan of a job that began before (refit).

// Overrun returns how long the current step has exceeded its time.
func Overrun(c *state.Core, j *state.Job, now time.Time) time.Duration { return now.Sub(Due(c, j)) }

// Due returns when the time of the current step ended, or will end.
func Due(c *state.Core, j *state.Job) time.Time {
	due := j.Expected()
	if j.Overdue != 0 {
		due = max(due, j.Overdue)
	} else if len(j.Plan) >= j.Step {
		due = max(due, j.Plan[j.Step-1].End)
	}
	return msg.Later(time.Unix(due, 0), c.Awake) // the application may have slept as well
}

// Lapse gives up the promise for the coming steps of a job, if there are nodes to hold for them.
func Lapse(c *state.Core, j *state.Job, now time.Time) {
	if j.Last() || len(j.Plan) != len(j.Profile) || len(HoldsOf(c, j, now.Unix())) == 0 {
		return
	}
	refit.Forsake(c, j, now.Unix())
	c.Event(j, "lapsed", map[string]any{"step": j.Step})
	c.LogJob(j).Warn("holds of coming steps lapsed; planning these steps again when this step ends")
}

// CancelHolds makes the promise of a job lapse, and answers the caller.
func CancelHolds(c *state.Core, k *state.OpenCall) {
	refuse := func(kind error, format string, args ...any) {
		c.Emit(msg.Reply{ID: k.ID, Cancelled: &api.Cancelled{Job: k.Job, Holds: []api.Span{}}, Err: api.Errorf(kind, format, args...)})
	}
	j, err := follow.Callee(c, k.Job)
	if err != nil {
		c.Emit(msg.Reply{ID: k.ID, Cancelled: &api.Cancelled{Job: k.Job, Holds: []api.Span{}}, Err: err})
		return
	}
	switch {
	case !j.Runs():
		refuse(api.ErrConflict, "%s has not begun, so nothing is promised to it: scontrol hold %d keeps it, and what is held for its start, away", msg.JobNumber(j.SlurmID), j.SlurmID)
		return
	case j.State != row.Running:
		refuse(api.ErrConflict, "%s has ended its step and is being given the next one's nodes", msg.JobNumber(j.SlurmID))
		return
	case j.Busy || j.Unwritten || len(j.Expanders) > 0:
		c.NextCycle = c.Now
		refuse(api.ErrUnavailable, "%s is being changed at this moment", msg.JobNumber(j.SlurmID))
		return
	case j.Lapsed():
		refuse(api.ErrConflict, "nothing is held for %s any more: it is planned again when it ends its step", msg.JobNumber(j.SlurmID))
		return
	}
	var holds []state.Hold
	if !j.Last() && len(j.Plan) == len(j.Profile) && j.Kept == nil {
		holds = HoldsOf(c, j, c.Now.Unix())
	}
	if len(holds) == 0 {
		refuse(api.ErrConflict, "nothing is held for coming steps of %s", msg.JobNumber(j.SlurmID))
		return
	}
	a := api.Cancelled{Job: j.SlurmID, Step: j.Step, Holds: []api.Span{}}
	for _, h := range holds {
		a.Holds = append(a.Holds, api.Span{Step: h.Step, Start: c.Wall(time.Unix(h.Start, 0)), End: c.Wall(time.Unix(h.End, 0)), Nodes: len(h.Nodes), NodeList: slurmctl.CompressNodes(h.Nodes)})
	}
	refit.Forsake(c, j, j.Plan[j.Step-1].End)
	j.Forgo(k.Cancel.By + " has cancelled its holds")
	c.Event(j, "lapsed", map[string]any{"after": j.Step, "by": k.Cancel.By})
	c.LogJob(j).WithField("by", k.Cancel.By).Warn("holds of coming steps cancelled; planning these steps again when this step ends")
	c.NextCycle = c.Now
	c.Emit(msg.Reply{ID: k.ID, Cancelled: &a})
}

// WhyAnew returns why the promise of a job lapsed that has ended its step; `step` names the step.
func WhyAnew(j *state.Job, step string) string {
	if j.Forgone != "" && j.ForgoneIn == j.Step {
		return j.Forgone
	}
	return step + " lasted longer than its profile says"
}
