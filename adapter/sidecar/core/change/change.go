package change

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/act"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Answer answers a call that changes a job, and reports whether it did. If not, the call must wait.
func Answer(c *state.Core, k *state.OpenCall) bool {
	j, err := jobOf(c, k)
	if err != nil {
		return reply(c, k, nil, err)
	}
	k.Of = j
	if i := slices.IndexFunc(j.Changes, func(ch row.Change) bool { return ch.ID == k.Change.ID }); i >= 0 {
		return answerChanged(c, k, j, j.Changes[i])
	}
	if err := mayAsk(c, j); err != nil && k.Change.Shrink == nil {
		return reply(c, k, nil, err)
	}
	if g := k.Change.Grow; g != nil && !k.Change.DryRun && j.Runs() {
		if err := follow.MayNotGrow(j, k); err != nil {
			return reply(c, k, nil, err)
		}
	}
	if !readyToChange(c, k, j) {
		return false
	}
	if carries, err := lend.AnswersFirst(c, k, j); carries || err != nil {
		return err != nil && reply(c, k, nil, err)
	}
	if lend.GivesBack(c, k.Change, j) {
		return lend.AnswerGiveBack(c, k, j)
	}
	return answerTried(c, k, j)
}

// reply answers a call.
func reply(c *state.Core, k *state.OpenCall, a *api.Change, err error) bool {
	c.Emit(msg.Reply{ID: k.ID, Change: a, Err: err})
	return true
}

// jobOf returns the job that a call changes, or why the call is refused.
func jobOf(c *state.Core, k *state.OpenCall) (*state.Job, error) {
	if k.Refused != nil {
		return nil, k.Refused
	}
	if err := request.CheckChange(k.Change.ID); err != nil {
		return nil, api.Errorf(api.ErrInvalid, "the request's id: %v", err)
	}
	return follow.Callee(c, k.Job)
}

// answerTried does what Answer does once the change of the job is possible: it asks for an attempt, and answers with its result.
func answerTried(c *state.Core, k *state.OpenCall, j *state.Job) bool {
	switch {
	case k.Tried != nil && (k.Change.DryRun || !outdated(c, k, j)):
		return conclude(c, k, j)
	case k.Tried != nil && k.Attempts >= MostTries:
		return reply(c, k, nil, api.Errorf(api.ErrUnavailable, "other jobs' promises changed during planning: try again"))
	case !isNext(c, k):
		return false
	}
	k.Forget()
	t, err := Target(c, j, k.Change)
	if err != nil {
		return reply(c, k, nil, err)
	}
	try(c, k, j, t)
	return false
}

// mayAsk returns why a job may not change what it asked for, or nil. It may give nodes back in any case.
func mayAsk(c *state.Core, j *state.Job) error {
	if c.Drained() {
		return api.Errorf(api.ErrConflict, "%s: jobs keep what was promised to them, and get no more", c.DrainWords())
	}
	if j.BestEffort() {
		return api.Errorf(api.ErrConflict, "%s is a best-effort job: nothing can be promised to it; it is offered nodes that are free (evosctl wait-event)", msg.JobNumber(j.SlurmID))
	}
	if err := adopt.MayEvolve(c, j); err != nil {
		return api.Errorf(api.ErrForbidden, "%v; the job keeps what was promised to it, and gets no more", err)
	}
	return nil
}

// conclude answers a call whose change was planned, or makes the change. It reports whether it answered.
func conclude(c *state.Core, k *state.OpenCall, j *state.Job) bool {
	tried := k.Result()
	k.Forget()
	a := lend.ChangeOf(c, tried.Job)
	a.Ready, a.DryRun, a.Accepted, a.Why = true, k.Change.DryRun, tried.Refused == "", tried.Refused
	if tried.Earliest != 0 {
		a.Earliest = c.Wall(time.Unix(tried.Earliest, 0))
	}
	if k.Change.Shrink != nil && a.Accepted && len(tried.Plan) > j.Step {
		a.Leaving = msg.Without(j.Nodes(), tried.Plan[j.Step].Nodes)
	}
	if a.Accepted && !a.DryRun {
		bookGrowth(c, j, tried.Later)
		MakeChange(c, j, tried.Target, k.Change.ID)
		act.WriteRequest(c, j)
		return false
	}
	if !a.DryRun {
		detail := map[string]any{"asked": tried.Words, "why": tried.Refused}
		if tried.Earliest != 0 {
			detail["earliest"] = c.WallSecond(tried.Earliest)
		}
		c.Event(j, "change refused", detail)
	}
	return reply(c, k, &a, nil)
}

// readyToChange reports whether the core knows everything that a change depends on, as of the
// time of the call or later.
func readyToChange(c *state.Core, k *state.OpenCall, j *state.Job) bool {
	s := c.Snapshot
	if j.Busy || j.Unwritten {
		return false
	}
	if s.Taken.Before(k.At) || j.Touched.After(s.Taken) || j.State == row.Starting || j.Asked == nil {
		c.NextCycle = c.Now
		return false
	}
	_, known := slurm.RulesSince(c, k.At.Add(-slurm.LimitsFor))
	return known
}

// answerChanged answers a call whose change was made. For a growth or shrink, it answers once the
// next step has begun.
func answerChanged(c *state.Core, k *state.OpenCall, j *state.Job, made row.Change) bool {
	if j.Unwritten {
		return false
	}
	a := lend.ChangeOf(c, j)
	a.Ready, a.Accepted = true, true
	var err error
	if k.Change.Update == nil {
		if k.Since < 0 {
			k.Since = j.Denials
		}
		switch {
		case made.Step == j.Step && (j.Denied != "" || k.Since < j.Denials):
			j.DenialHeard()
			err = api.Errorf(api.ErrConflict, "%s", j.Denial)
		case !j.Runs():
			err = api.Errorf(api.ErrConflict, "%s was requeued: it starts over", msg.JobNumber(j.SlurmID))
		case j.Step <= made.Step:
			return false
		}
		if o := refit.OfferAt(j); made.Step == 0 && o != nil && o.State == refit.OfferAccepted { // lent nodes are still being given back
			return false
		}
		has := lend.Allocation(c, j)
		if made.Step > 0 {
			has.Lost = j.LostSince(made.Step)
		}
		a.Has = &has
	}
	return reply(c, k, &a, err)
}

// checkChange returns an error if a job cannot be changed now, or the request is not for its current step.
func checkChange(c *state.Core, j *state.Job, req *api.ChangeRequest) error {
	conflict := func(format string, args ...any) error {
		return api.Errorf(api.ErrConflict, "%s %s", msg.JobNumber(j.SlurmID), fmt.Sprintf(format, args...))
	}
	kinds := 0
	for _, is := range []bool{req.Update != nil, req.Grow != nil, req.Shrink != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return api.Errorf(api.ErrInvalid, "want one of update, grow and shrink")
	}
	switch {
	case !j.Mode.Resizes:
		return conflict("is a chain: its steps are Slurm jobs that are submitted already; cancel it and submit another")
	case len(j.Components) > 0:
		return conflict("has components (--component), whose profiles cannot be changed: end steps early or late by evosctl next")
	case j.Frequencies != nil:
		return conflict("has CPU frequencies by step, which a change would mix up: end steps early or late by evosctl next")
	case j.Ending:
		return conflict("is about to end")
	case follow.IsSuspended(j):
		return conflict("is suspended by Slurm")
	}
	if j.State == row.Running {
		follow.Believe(c, j, req.From)
	}
	if req.From > 0 && j.Runs() && req.From != j.Step {
		return conflict("is in step %d, not %d (evaluate what evosctl env prints, and EVO_STEP is right)", j.Step, req.From)
	}
	return nil
}

// Target returns the job as changed by the request, or why the request is invalid.
func Target(c *state.Core, j *state.Job, req *api.ChangeRequest) (*state.Target, error) {
	if err := checkChange(c, j, req); err != nil {
		return nil, err
	}
	values, copied := *j.Job, *j
	t := &state.Target{Job: &copied, Most: plan.MostOf(j)}
	values.Moldable = nil // its alternatives no longer apply
	t.Job.Job = &values
	t.Plan = slices.Clone(j.Plan)
	if j.Lapsed() {
		t.Plan = nil
	}
	var err error
	switch {
	case req.Update != nil:
		err = toUpdate(c, t, *req.Update)
	case req.Grow != nil:
		err = toGrow(c, t, *req.Grow)
	default:
		err = toShrink(c, t, *req.Shrink)
	}
	if err != nil {
		return nil, err
	}
	t.Profile = slurm.Floored(t.Job)
	if err := request.CheckSteps(t.Profile); err != nil {
		return nil, api.Errorf(api.ErrInvalid, "%s with its steps up to now: %v", msg.JobNumber(j.SlurmID), err)
	}
	if m := j.Malleable; m != nil {
		for _, step := range t.Profile[j.Step:] {
			if !m.Sizes.Has(step.Nodes) {
				return nil, api.Errorf(api.ErrInvalid, "%s would have %d nodes, which is none of its sizes (%v)", msg.JobNumber(j.SlurmID), step.Nodes, m.Sizes)
			}
		}
	}
	t.Malleable = plan.Rebound(j.Malleable, t.Profile, j.Step, t.Most)
	t.Overdue, t.Kept = 0, nil
	return t, nil
}

// passed returns how many seconds the current step of a running job has lasted so far.
func passed(c *state.Core, j *state.Job) int64 { return max(c.Now.Unix()-j.StepStarted.Unix(), 1) }

// checkSeconds checks durations in a request.
func checkSeconds(names string, all ...int64) error {
	for _, s := range all {
		if s < 0 || s > planner.MaxDuration {
			return api.Errorf(api.ErrInvalid, "%s: %d seconds", names, s)
		}
	}
	return nil
}

func toUpdate(c *state.Core, t *state.Target, u api.Update) error {
	if err := checkSeconds("--current, --wait", u.Current, u.Wait); err != nil {
		return err
	}
	var coming planner.Profile
	if u.Profile != "" {
		var err error
		if coming, t.Most, err = plan.ComingOf(t.Job, u.Profile, len(c.Snapshot.Nodes)); err != nil {
			return api.Errorf(api.ErrInvalid, "--profile: %v", err)
		}
	}
	switch {
	case coming == nil && u.Current == 0:
		return api.Errorf(api.ErrInvalid, "nothing to change: set --profile, --current, or both")
	case u.Current > 0 && t.State != row.Running:
		return api.Errorf(api.ErrConflict, "--current: %s is in no step at present", msg.JobNumber(t.SlurmID))
	case u.Wait > 0 && !t.Runs():
		return api.Errorf(api.ErrInvalid, "--wait: a job that has not begun is planned for when it can begin")
	}
	t.Wait, t.Words = u.Wait, "update"
	over := slices.Clone(t.Profile[:t.Step])
	if coming == nil {
		coming = t.Profile[t.Step:]
	} else {
		t.Words += " to " + request.BoundsOf(coming, t.Most).String()
	}
	if u.Current > 0 {
		over[t.Step-1].Duration = passed(c, t.Job) + u.Current
		t.Words += fmt.Sprintf(", the present step for %v more", time.Duration(u.Current)*time.Second)
	}
	t.Profile = slices.Concat(over, coming)
	return nil
}

// inStep checks that a job is in a step that may end now for another size.
func inStep(t *state.Target) error {
	conflict := func(format string, args ...any) error {
		return api.Errorf(api.ErrConflict, "%s %s", msg.JobNumber(t.SlurmID), fmt.Sprintf(format, args...))
	}
	switch has := len(t.Nodes()); {
	case !t.Runs():
		return conflict("has not begun: change its profile (evosctl update)")
	case t.State == row.Waiting:
		return conflict("has ended step %d and waits for the next one's nodes: evosctl next goes on waiting", t.Step)
	case has-len(refit.Lent(t.Job)) != slurm.Needs(t.Job):
		return conflict("has %d of its step's %d nodes at present", has, t.Profile[t.Step-1].Nodes)
	}
	return nil
}

// cut ends the current step of a target now, and returns how much of its time was left.
func cut(c *state.Core, t *state.Target) (over planner.Profile, left int64) {
	over = slices.Clone(t.Profile[:t.Step])
	left = t.Expected() - c.Now.Unix()
	over[t.Step-1].Duration = passed(c, t.Job)
	t.Ends = true
	t.EndStep(c.Now)
	return over, max(left, 0)
}

// checkGrow returns an error if the request to grow is invalid, or no step is running.
func checkGrow(t *state.Target, g api.Grow) error {
	if err := checkSeconds("--for, --wait", g.For, g.Wait); err != nil {
		return err
	}
	switch {
	case g.Nodes < 1:
		return api.Errorf(api.ErrInvalid, "to grow by %d nodes: want at least 1", g.Nodes)
	case g.Nodes > planner.MaxNodes-len(t.Nodes()):
		return api.Errorf(api.ErrInvalid, "to grow by %d nodes: no cluster has as many", g.Nodes)
	case g.Min < 0 || g.Min > g.Nodes:
		return api.Errorf(api.ErrInvalid, "--min=%d: want 1 to %d", g.Min, g.Nodes)
	}
	return inStep(t)
}

func toGrow(c *state.Core, t *state.Target, g api.Grow) error {
	if err := checkGrow(t, g); err != nil {
		return err
	}
	has, least := len(t.Nodes()), t.Profile[t.Step-1].Nodes
	if lent := refit.Lent(t.Job); len(lent) > 0 && c.Pressing.Any(lent) {
		return api.Errorf(api.ErrConflict, "%s must give back %s: stock jobs wait for these lent nodes", msg.JobNumber(t.SlurmID), slurmctl.CompressNodes(lent))
	}
	coming := t.Profile[t.Step:]
	over, left := cut(c, t)
	lasts := g.For
	if lasts == 0 {
		lasts = left
	}
	if lasts == 0 {
		return api.Errorf(api.ErrInvalid, "the time of step %d is over: set --for", t.Step)
	}
	t.Grown, t.Wait, t.Words = len(over), g.Wait, fmt.Sprintf("grow by %d for %v", g.Nodes, time.Duration(lasts)*time.Second)
	t.Fewest = has + g.Nodes
	if g.Min > 0 {
		t.Fewest = has + g.Min
		t.Words += fmt.Sprintf(", at least by %d", g.Min)
	}
	most := min(has+g.Nodes, max(len(c.Snapshot.Nodes), t.Fewest))
	if m := t.Malleable; m != nil && m.Sizes.Floor(most) >= t.Fewest {
		most = m.Sizes.Floor(most)
	}
	t.Profile = append(over, planner.Step{Duration: lasts, Nodes: most})
	if left > lasts {
		t.Profile = append(t.Profile, planner.Step{Duration: left - lasts, Nodes: least})
		if t.Malleable != nil { // malleable within the bounds of the ended step
			t.Most = append([]int{adopt.MostOf(t.Job, t.Step)}, t.Most...)
		}
	}
	t.Profile = append(t.Profile, coming...)
	if t.Claim > 0 && g.Wait == 0 { // within its claim the job gets the nodes in finite time
		t.Wait = planner.MaxDuration
	}
	return nil
}

func toShrink(c *state.Core, t *state.Target, sh api.Shrink) error {
	if err := checkSeconds("--for", sh.For); err != nil {
		return err
	}
	if err := inStep(t); err != nil {
		return err
	}
	nodes := t.Nodes()
	by := sh.Nodes
	switch {
	case sh.Nodes != 0 && len(sh.List) > 0, sh.Nodes == 0 && len(sh.List) == 0:
		return api.Errorf(api.ErrInvalid, "set how many nodes to give back, or which")
	case len(sh.List) > 0:
		by = len(slices.Compact(slices.Sorted(slices.Values(sh.List))))
		if bad := msg.Without(sh.List, nodes); len(bad) > 0 {
			return api.Errorf(api.ErrInvalid, "the job does not have %s", slurmctl.CompressNodes(bad))
		}
		if by != len(sh.List) {
			return api.Errorf(api.ErrInvalid, "a node is listed twice")
		}
		if why := slurm.WhyBound(t.Job, sh.List); why != "" {
			return api.Errorf(api.ErrInvalid, "%s and cannot be given back before the end", why)
		}
	case by < 0:
		return api.Errorf(api.ErrInvalid, "to shrink by %d nodes: want at least 1", by)
	}
	if by >= len(nodes) {
		return api.Errorf(api.ErrInvalid, "to shrink by %d nodes: the job has %d, and keeps one", by, len(nodes))
	}
	coming := slices.Clone(t.Profile[t.Step:])
	over, left := cut(c, t)
	t.Release, t.Words = sh.List, fmt.Sprintf("shrink by %d", by)
	if sh.For > 0 {
		left = sh.For
		t.Words += fmt.Sprintf(" for %v", time.Duration(left)*time.Second)
	}
	switch has := len(nodes) - by; {
	case len(coming) > 0 && coming[0].Nodes == has:
		coming[0].Duration = min(coming[0].Duration+left, planner.MaxDuration)
	case left == 0:
		return api.Errorf(api.ErrInvalid, "the time of step %d is over: set --for", t.Step)
	default:
		over = append(over, planner.Step{Duration: left, Nodes: has})
	}
	t.Profile = append(over, coming...)
	return nil
}

// MakeChange applies a planned change to a job.
func MakeChange(c *state.Core, j *state.Job, t *state.Target, id string) {
	from := j.Profile.String()
	if t.Ends {
		c.Event(j, "step ended", map[string]any{"step": j.Step, "expected": c.WallSecond(j.Expected())})
	}
	j.Change(t, id, c.Now)
	refit.ChangeProfile(c, j)
	c.Save(j)
	c.StorePlan(j, t.Plan)
	c.Event(j, "changed", map[string]any{"asked": t.Words, "from": from, "to": j.Profile.String()})
	c.LogJob(j).WithField("profile", j.Profile.String()).Info("its request was changed: " + t.Words)
}
