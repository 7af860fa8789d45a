package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
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

// lapsed reports whether a job is promised nothing except the nodes that it has.
func (j *job) lapsed() bool {
	return j.State == row.Running && !j.last() && j.Step > 0 && len(j.plan) == j.Step
}

// overrun returns how long the current step has exceeded its time.
func (c *Core) overrun(j *job, now time.Time) time.Duration {
	due := j.expected()
	if j.overdue != 0 {
		due = max(due, j.overdue)
	} else if len(j.plan) >= j.Step {
		due = max(due, j.plan[j.Step-1].end)
	}
	return min(now.Sub(time.Unix(due, 0)), now.Sub(c.awake)) // the application may have slept as well
}

// lapse gives up the promise for the coming steps of a job, if there are nodes to hold for them.
func (c *Core) lapse(j *job, now time.Time) {
	if j.last() || len(j.plan) != len(j.Profile) || len(c.holdsOf(j, now.Unix())) == 0 {
		return
	}
	c.forsake(j, now.Unix())
	c.event(j, "lapsed", map[string]any{"step": j.Step})
	c.logJob(j).Warn("holds of coming steps lapsed; planning these steps again when this step ends")
}

// forsake ends a job's plan with its current step.
func (c *Core) forsake(j *job, end int64) {
	plan := slices.Clone(j.plan[:j.Step])
	plan[j.Step-1].end = end
	c.storePlan(j, plan)
	j.extend, j.needsReplan = false, true
}

// yield gives up the promise for the coming steps of a running job, since another job's plan comes first.
func (c *Core) yield(j, to *job) {
	c.event(j, "lapsed", map[string]any{"in": j.Step, "for": to.SlurmID})
	c.forsake(j, j.plan[j.Step-1].end)
	j.forgone, j.forgoneIn = jobNumber(to.SlurmID)+", which began before it, is planned first", j.Step
	if beganFirst(j, to) < 0 {
		j.forgone = fmt.Sprintf("%s keeps %s: "+pinnedText, jobNumber(to.SlurmID), to.pinned(), to.pinned())
	}
	j.reason = saying(whyLapsed, j.lapsedWords())
	c.logJob(j).Warn(j.reason.words())
}

// cancelHolds makes the promise of a job lapse, and answers the caller.
func (c *Core) cancelHolds(k *call) {
	refuse := func(kind error, format string, args ...any) {
		c.emit(Reply{ID: k.ID, Cancelled: &api.Cancelled{Job: k.Job, Holds: []api.Span{}}, Err: api.Errorf(kind, format, args...)})
	}
	j, err := c.callee(k.Job)
	if err != nil {
		c.emit(Reply{ID: k.ID, Cancelled: &api.Cancelled{Job: k.Job, Holds: []api.Span{}}, Err: err})
		return
	}
	switch {
	case !j.runs():
		refuse(api.ErrConflict, "%s has not begun, so nothing is promised to it: scontrol hold %d keeps it, and what is held for its start, away", jobNumber(j.SlurmID), j.SlurmID)
		return
	case j.State != row.Running:
		refuse(api.ErrConflict, "%s has ended its step and is being given the next one's nodes", jobNumber(j.SlurmID))
		return
	case j.busy || j.unwritten || len(j.expanders) > 0:
		c.nextCycle = c.now
		refuse(api.ErrUnavailable, "%s is being changed at this moment", jobNumber(j.SlurmID))
		return
	case j.lapsed():
		refuse(api.ErrConflict, "nothing is held for %s any more: it is planned again when it ends its step", jobNumber(j.SlurmID))
		return
	}
	var holds []hold
	if !j.last() && len(j.plan) == len(j.Profile) && j.kept == nil {
		holds = c.holdsOf(j, c.now.Unix())
	}
	if len(holds) == 0 {
		refuse(api.ErrConflict, "nothing is held for coming steps of %s", jobNumber(j.SlurmID))
		return
	}
	a := api.Cancelled{Job: j.SlurmID, Step: j.Step, Holds: []api.Span{}}
	for _, h := range holds {
		a.Holds = append(a.Holds, api.Span{Step: h.step, Start: c.wall(time.Unix(h.start, 0)), End: c.wall(time.Unix(h.end, 0)), Nodes: len(h.nodes), NodeList: slurmctl.CompressNodes(h.nodes)})
	}
	c.forsake(j, j.plan[j.Step-1].end)
	j.forgone, j.forgoneIn = k.Cancel.By+" has cancelled its holds", j.Step
	j.reason = saying(whyLapsed, j.lapsedWords())
	c.event(j, "lapsed", map[string]any{"after": j.Step, "by": k.Cancel.By})
	c.logJob(j).WithField("by", k.Cancel.By).Warn("holds of coming steps cancelled; planning these steps again when this step ends")
	c.nextCycle = c.now
	c.emit(Reply{ID: k.ID, Cancelled: &a})
}

// lapsedWords describes a lapsed promise. After a restart the reason is not known until a step overruns.
func (j *job) lapsedWords() string {
	text := "nodes are no longer held for its coming steps; it is planned again when it calls next"
	if j.mode.stepsAreJobs {
		text = "nodes are no longer held for its coming steps; they are planned again when it ends"
	}
	switch {
	case j.forgone != "" && j.forgoneIn == j.Step:
		return j.forgone + "; " + text
	case j.warned:
		return "the step lasts longer than its profile says; " + text
	}
	return text
}

// whyAnew returns why the promise of a job lapsed that has ended its step; `step` names the step.
func (j *job) whyAnew(step string) string {
	if j.forgone != "" && j.forgoneIn == j.Step {
		return j.forgone
	}
	return step + " lasted longer than its profile says"
}

// supposed returns until when a running job without a plan keeps each of its nodes, if it gives back the last
// nodes first.
func (j *job) supposed() map[string]int64 {
	until := map[string]int64{}
	if j.Step == 0 {
		return until
	}
	nodes := j.nodes()
	j.boundFirst(nodes)
	for i, name := range nodes {
		until[name] = j.expected()
		for k := j.Step; k < len(j.Profile) && i < j.Profile[k].Nodes; k++ {
			until[name] += j.Profile[k].Duration
		}
	}
	return until
}

// keeps lists the nodes that a job with a lapsed promise will not give back at the end of its step: as many as
// the next step has. The others are taken back once another job needs them (watchOverrun).
func (j *job) keeps() []string {
	nodes := j.own()
	j.boundFirst(nodes)
	if !j.mode.carriesNodes || j.State == row.Waiting {
		return nodes // until the link's time limit, or until it is planned
	}
	return nodes[:min(len(nodes), j.Profile[j.Step].Nodes)]
}
