package core

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// call holds a client's waiting call.
type call struct {
	Call
	job   *job // the job that the call waits for; nil if the call has not been evaluated yet
	since int  // growths given up before the call began to wait
	again bool // a new answer may be possible

	at      time.Time // when the call arrived
	refused error     // why the change is taken back after it had begun

	// for a change, see attempt.go
	target   *target // the change being tried
	attempt  Attempt // with a copy of everything that the change depends on
	tried    *Tried  // the result; nil if not known yet
	attempts int
}

// called handles a new call.
func (c *Core) called(in Call) {
	if err := c.tooMany(in); err != nil {
		c.emit(Reply{ID: in.ID, Change: &api.Change{Job: in.Job, Plan: []api.Span{}}, Err: err})
		return
	}
	k := &call{Call: in, since: -1, at: c.now}
	if in.Change != nil || !c.answer(k) { // the answer to a change comes from decide
		c.calling = append(c.calling, k)
	}
}

// withdrawn answers a waiting call with the current state. A step that the call ended stays ended.
func (c *Core) withdrawn(in Withdrawal) {
	i := slices.IndexFunc(c.calling, func(k *call) bool { return k.ID == in.ID })
	if i < 0 {
		return
	}
	k := c.calling[i]
	c.calling = slices.Delete(c.calling, i, i+1)
	switch {
	case k.Change != nil:
		c.emit(Reply{ID: k.ID, Change: &api.Change{Job: k.Job, Plan: []api.Span{}}})
		return
	case k.Offer != nil:
		c.emit(Reply{ID: k.ID, Offer: &api.Offer{Job: k.Job}})
		return
	case k.Answer != nil:
		c.emit(Reply{ID: k.ID, Answer: &api.Answer{Job: k.Job, Offer: k.Answer.Offer}})
		return
	}
	a := c.allocation(k.job)
	a.Ready, a.Note = false, c.why(k.job)
	c.emit(Reply{ID: k.ID, Allocation: a})
}

// notify marks the calls that wait for a change of the job, so that the core tries to answer them.
func (c *Core) notify(j *job) {
	for _, k := range c.calling {
		k.again = k.again || k.job == j
	}
}

// waitedFor reports whether a call waits for a change of the job.
func (c *Core) waitedFor(j *job) bool {
	return slices.ContainsFunc(c.calling, func(k *call) bool { return k.job == j })
}

// answerCalls answers the calls that were marked by notify, and changes.
func (c *Core) answerCalls() {
	answered := map[*call]bool{}
	for _, k := range c.inTurn() {
		again := k.again || k.Change != nil
		k.again = false
		answered[k] = again && c.answer(k)
	}
	c.calling = slices.DeleteFunc(c.calling, func(k *call) bool { return answered[k] })
}

// changing reports whether a call waits for a change of a job's request.
func (c *Core) changing() bool {
	return slices.ContainsFunc(c.calling, func(k *call) bool { return k.Change != nil })
}

// answer answers a call, and reports whether it did. If not, the call must wait.
func (c *Core) answer(k *call) bool {
	if j := c.byID[slurmctl.JobID(k.Job)]; j != nil {
		c.at(j)
	}
	switch {
	case k.Change != nil:
		return c.answerChange(k)
	case k.Offer != nil:
		return c.tellOffer(k)
	case k.Answer != nil:
		return c.takeAnswer(k)
	case k.Progress != nil:
		c.takeProgress(k)
		return true
	case k.Cancel != nil:
		c.cancelHolds(k)
		return true
	}
	j, err := c.callee(k.Job)
	var a api.Allocation
	wait := false
	switch {
	case err != nil:
	case k.Next == nil:
		if a = c.allocation(j); !j.runs() {
			// a script may ask before a poll has shown its job as running
			c.nextCycle = c.now
			a, err = api.Allocation{}, api.Errorf(api.ErrUnavailable, "%s is not running yet", jobNumber(k.Job))
		}
	default:
		if k.since < 0 {
			k.since = j.denials
		}
		if k.Next.From == j.Step && (j.denied != "" || k.since < j.denials) {
			j.denied = ""
			err = api.Errorf(api.ErrConflict, "%s", j.denial)
			break
		}
		k.job = j
		a, wait, err = c.endOrWait(j, *k.Next)
	}
	if !wait {
		c.emit(Reply{ID: k.ID, Allocation: a, Err: err})
	}
	return !wait
}

// callee returns the job that a call is about.
func (c *Core) callee(id uint32) (*job, error) {
	j := c.byID[slurmctl.JobID(id)]
	switch {
	case c.twin != nil:
		return nil, api.Errorf(api.ErrUnavailable, "the sidecar changes nothing: another evoslurmd drives this cluster")
	case c.snapshot == nil, c.isComing(slurmctl.JobID(id)): // the database may be outdated and incomplete
		return nil, api.Errorf(api.ErrUnavailable, "the sidecar has just started and has not seen %s yet", jobNumber(id))
	case j == nil && c.refused[slurmctl.JobID(id)].ID != 0:
		return nil, api.Errorf(api.ErrConflict, "%s is not driven by the sidecar, %s", jobNumber(id), c.refused[slurmctl.JobID(id)].Reason)
	case j == nil:
		return nil, api.Errorf(api.ErrNotFound, "%s is not an evolving job, or has ended", jobNumber(id))
	}
	return j, nil
}

// endOrWait ends the step that the caller names and no other step. It does not end a step twice. It
// returns what the job has in the next step, or reports that the caller must wait for it.
func (c *Core) endOrWait(j *job, req api.NextRequest) (a api.Allocation, wait bool, err error) {
	if j.State == row.Running {
		c.believe(j, req.From)
	}
	switch {
	case !j.runs():
		c.nextCycle = c.now
		return a, true, nil
	case req.From < 1 || req.From > len(j.Profile):
		return a, false, api.Errorf(api.ErrInvalid, "step %d: the job has steps 1 to %d", req.From, len(j.Profile))
	case req.From > j.Step:
		return a, false, api.Errorf(api.ErrConflict, "step %d has not begun: the job is in step %d", req.From, j.Step)
	case req.From < j.Step:
		return c.allocation(j), false, nil
	case j.last():
		if j.StepEnded.IsZero() {
			j.StepEnded = c.now
			c.save(j)
			c.event(j, "step ended", map[string]any{"step": j.Step})
		}
		a = c.allocation(j)
		a.Done = true
		return a, false, nil
	case !j.mode.scriptSpansSteps:
		return a, false, api.Errorf(api.ErrConflict, "%s is a chain: every step is a job of its own, which ends when its script does", jobNumber(j.SlurmID))
	case j.State == row.Running:
		if bad := Without(req.Release, j.nodes()); len(bad) > 0 {
			return a, false, api.Errorf(api.ErrInvalid, "the job does not hold %s", slurmctl.CompressNodes(bad))
		}
		if why := j.whyBound(req.Release); why != "" {
			return a, false, api.Errorf(api.ErrInvalid, "%s and cannot be released before the end", why)
		}
		j.release = req.Release
		c.endStep(j, c.now)
	}
	return a, true, nil
}
