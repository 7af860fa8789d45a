package talk

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/change"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Called handles a new call.
func Called(c *state.Core, in msg.Call) {
	act.Submitted(c, in)
	err := change.TooMany(c, in)
	if c.Config.Observes() {
		err = api.Errorf(api.ErrUnavailable, "%v", adopt.ErrObserving)
	}
	if err != nil {
		c.Emit(msg.Reply{ID: in.ID, Change: &api.Change{Job: in.Job, Plan: []api.Span{}}, Err: err})
		return
	}
	k := &state.OpenCall{Call: in, Since: -1, At: c.Now}
	if in.Change != nil || !answer(c, k) { // the answer to a change comes from decide
		c.Calling = append(c.Calling, k)
	}
}

// Withdrawn answers a waiting call with the current state. A step that the call ended stays ended.
func Withdrawn(c *state.Core, in msg.Withdrawal) {
	i := slices.IndexFunc(c.Calling, func(k *state.OpenCall) bool { return k.ID == in.ID })
	if i < 0 {
		return
	}
	k := c.Calling[i]
	c.Calling = slices.Delete(c.Calling, i, i+1)
	switch {
	case k.Change != nil:
		c.Emit(msg.Reply{ID: k.ID, Change: &api.Change{Job: k.Job, Plan: []api.Span{}}})
		return
	case k.Offer != nil:
		c.Emit(msg.Reply{ID: k.ID, Offer: &api.Offer{Job: k.Job}})
		return
	case k.Place != nil:
		c.Emit(msg.Reply{ID: k.ID, Place: &api.Placement{Cluster: c.SlurmConfig.ClusterName}})
		return
	case k.Answer != nil:
		c.Emit(msg.Reply{ID: k.ID, Answer: &api.Answer{Job: k.Job, Offer: k.Answer.Offer}})
		return
	}
	a := lend.Allocation(c, k.Of)
	a.Ready, a.Note = false, c.Why(k.Of)
	c.Emit(msg.Reply{ID: k.ID, Allocation: a})
}

// AnswerCalls answers the calls that were marked by notify, and changes.
func AnswerCalls(c *state.Core) {
	answered := map[*state.OpenCall]bool{}
	for _, k := range change.InTurn(c) {
		again := k.Again || k.Change != nil || k.Place != nil
		k.Again = false
		answered[k] = again && answer(c, k)
	}
	c.Calling = slices.DeleteFunc(c.Calling, func(k *state.OpenCall) bool { return answered[k] })
}

// Changing reports whether a call waits for a change of a job's request.
func Changing(c *state.Core) bool {
	return slices.ContainsFunc(c.Calling, func(k *state.OpenCall) bool { return k.Change != nil })
}

// answer answers a call, and reports whether it did. If not, the call must wait.
func answer(c *state.Core, k *state.OpenCall) bool {
	if j := c.ByID[slurmctl.JobID(k.Job)]; j != nil {
		plan.NoteHandling(c, j)
	}
	if first := act.Submission(c, k); first != nil {
		c.Emit(msg.Reply{ID: k.ID, Submit: first})
		return true
	}
	switch {
	case k.Change != nil:
		return change.Answer(c, k)
	case k.Offer != nil:
		return lend.TellOffer(c, k)
	case k.Answer != nil:
		return lend.TakeAnswer(c, k)
	case k.Progress != nil:
		follow.TakeProgress(c, k)
		return true
	case k.Cancel != nil:
		hold.CancelHolds(c, k)
		return true
	case k.Place != nil:
		return place(c, k)
	}
	return answerLetGo(c, k) || answerNext(c, k)
}

// answerNext does what answer does, for a call that asks what the job has now or in its next step.
func answerNext(c *state.Core, k *state.OpenCall) bool {
	j, err := follow.Callee(c, k.Job)
	var a api.Allocation
	wait := false
	switch {
	case err != nil:
	case k.Next == nil:
		if a = lend.Allocation(c, j); !j.Runs() || comes(j, slurmctl.JobID(k.Job)) {
			// a script may ask before a poll has shown its job as running
			c.NextCycle = c.Now
			a, err = api.Allocation{}, api.Errorf(api.ErrUnavailable, "%s is not running yet", msg.JobNumber(k.Job))
		}
	default:
		if k.Since < 0 {
			k.Since = j.Denials
		}
		if k.Next.From == j.Step && (j.Denied != "" || k.Since < j.Denials) {
			j.DenialHeard()
			err = api.Errorf(api.ErrConflict, "%s", j.Denial)
			break
		}
		k.Of = j
		a, wait, err = endOrWait(c, j, k)
	}
	if !wait {
		c.Emit(msg.Reply{ID: k.ID, Allocation: a, Err: err})
	}
	return !wait
}

// comes reports whether the caller's Slurm job is a later step of a chain than the one that the sidecar knows to run.
func comes(j *state.Job, caller slurmctl.JobID) bool {
	return j.Mode.StepsAreJobs && slices.Index(j.Chain, caller) >= j.Step
}

// endOrWait ends the step that the caller names and no other step. It does not end a step twice. It
// returns what the job has in the next step, or reports that the caller must wait for it.
func endOrWait(c *state.Core, j *state.Job, k *state.OpenCall) (a api.Allocation, wait bool, err error) {
	req := *k.Next
	follow.BelieveEnd(c, j, req.From)
	switch {
	case !j.Runs():
		c.NextCycle = c.Now
		return a, true, nil
	case req.From < 1 || req.From > len(j.Profile):
		return a, false, api.Errorf(api.ErrInvalid, "step %d: the job has steps 1 to %d", req.From, len(j.Profile))
	case req.From > j.Step:
		return a, false, api.Errorf(api.ErrConflict, "step %d has not begun: the job is in step %d", req.From, j.Step)
	case req.From < j.Step:
		a = lend.Allocation(c, j)
		a.Lost = j.LostSince(req.From)
		return a, false, nil
	case j.Last():
		if j.StepEnded.IsZero() {
			j.EndLastStep(c.Now)
			c.Save(j)
			c.Event(j, "step ended", map[string]any{"step": j.Step})
		}
		a = lend.Allocation(c, j)
		a.Done = true
		return a, false, nil
	case growsNext(j) && follow.MayNotGrow(j, k) != nil:
		return a, false, follow.MayNotGrow(j, k)
	case !j.Mode.ScriptSpansSteps:
		return a, false, api.Errorf(api.ErrConflict, "%s is a chain: every step is a job of its own, which ends when its script does", msg.JobNumber(j.SlurmID))
	case j.State == row.Running:
		if bad := msg.Without(req.Release, j.Nodes()); len(bad) > 0 {
			return a, false, api.Errorf(api.ErrInvalid, "the job does not hold %s", slurmctl.CompressNodes(bad))
		}
		if why := slurm.WhyBound(j, req.Release); why != "" {
			return a, false, api.Errorf(api.ErrInvalid, "%s and cannot be released before the end", why)
		}
		j.Release = req.Release
		act.EndStep(c, j, c.Now)
	}
	return a, true, nil
}

// growsNext reports whether a job has fewer nodes than its next step.
func growsNext(j *state.Job) bool { return j.Profile[j.Step].Nodes > len(j.Nodes()) }
