package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A script, user or operator may change the coming steps of a job while the job waits or runs
// (evosctl update, grow, shrink). The core finds out whether the change is possible before it
// changes anything: it plans the job as the only job that may move (tryChange). An accepted
// change is one transaction of the database. Then the sidecar writes the change to Slurm: the
// marker in the job's comment and, if the job is queued, its size and time limit. When Slurm has
// accepted that, the sidecar answers the caller. If Slurm refuses, the sidecar undoes the change.
// If the sidecar is killed in between, it continues from the database. So a change is made only
// once, and the old request does not come back if the database is lost later.

// mostChanges is how many changes of a job are remembered, so that each is made only once.
const mostChanges = 4

// target describes a job as it would be after a change.
type target struct {
	*job          // a copy
	words  string // the request in words
	ends   bool   // the current step ends now
	wait   int64
	fewest int   // smallest number of nodes, for a growth that may be smaller than requested
	behind bool  // the job goes behind all other waiting jobs
	grown  int   // position of the step to which the job grows; 0 if it does not grow
	most   []int // maximum nodes of the last steps, if they are malleable
}

// answerChange answers a call that changes a job, and reports whether it did. If not, the call must wait.
func (c *Core) answerChange(k *call) bool {
	reply := func(a *api.Change, err error) bool {
		c.emit(Reply{ID: k.ID, Change: a, Err: err})
		return true
	}
	if k.refused != nil {
		return reply(nil, k.refused)
	}
	if err := request.CheckChange(k.Change.ID); err != nil {
		return reply(nil, api.Errorf(api.ErrInvalid, "the request's id: %v", err))
	}
	j, err := c.callee(k.Job)
	if err != nil {
		return reply(nil, err)
	}
	k.job = j
	if i := slices.IndexFunc(j.Changes, func(ch row.Change) bool { return ch.ID == k.Change.ID }); i >= 0 {
		return c.answerChanged(k, j, j.Changes[i])
	}
	if !c.readyToChange(k, j) {
		return false
	}
	if carries, err := c.answersFirst(k, j); carries || err != nil {
		return err != nil && reply(nil, err)
	}
	if c.givesBack(k.Change, j) {
		return c.answerGiveBack(k, j)
	}
	if k.tried != nil && (k.Change.DryRun || !c.outdated(k, j)) {
		return c.conclude(k, j)
	}
	if k.tried != nil && k.attempts >= mostTries {
		return reply(nil, api.Errorf(api.ErrUnavailable, "other jobs' promises changed during planning: try again"))
	}
	if !c.isNext(k) {
		return false
	}
	k.forget()
	t, err := c.target(j, k.Change)
	if err != nil {
		return reply(nil, err)
	}
	c.try(k, j, t)
	return false
}

// conclude answers a call whose change was planned, or makes the change. It reports whether it answered.
func (c *Core) conclude(k *call, j *job) bool {
	tried := k.result()
	k.forget()
	a := c.changeOf(tried.job)
	a.Ready, a.DryRun, a.Accepted, a.Why = true, k.Change.DryRun, tried.refused == "", tried.refused
	if tried.earliest != 0 {
		a.Earliest = c.wall(time.Unix(tried.earliest, 0))
	}
	if k.Change.Shrink != nil && a.Accepted && len(tried.plan) > j.Step {
		a.Leaving = Without(j.nodes(), tried.plan[j.Step].nodes)
	}
	if a.Accepted && !a.DryRun {
		c.makeChange(j, tried.target, k.Change.ID)
		c.writeRequest(j)
		return false
	}
	if !a.DryRun {
		detail := map[string]any{"asked": tried.words, "why": tried.refused}
		if tried.earliest != 0 {
			detail["earliest"] = c.wallSecond(tried.earliest)
		}
		c.event(j, "change refused", detail)
	}
	c.emit(Reply{ID: k.ID, Change: &a})
	return true
}

// readyToChange reports whether the core knows everything that a change depends on, as of the
// time of the call or later.
func (c *Core) readyToChange(k *call, j *job) bool {
	s := c.snapshot
	if j.busy || j.unwritten {
		return false
	}
	if s.taken.Before(k.at) || j.touched.After(s.taken) || j.State == row.Starting || j.asked == nil {
		c.nextCycle = c.now
		return false
	}
	_, known := c.rulesSince(k.at.Add(-limitsFor))
	return known
}

// answerChanged answers a call whose change was made. For a growth or shrink, it answers once the
// next step has begun.
func (c *Core) answerChanged(k *call, j *job, made row.Change) bool {
	if j.unwritten {
		return false
	}
	a := c.changeOf(j)
	a.Ready, a.Accepted = true, true
	var err error
	if k.Change.Update == nil {
		if k.since < 0 {
			k.since = j.denials
		}
		switch {
		case made.Step == j.Step && (j.denied != "" || k.since < j.denials):
			j.denied = ""
			err = api.Errorf(api.ErrConflict, "%s", j.denial)
		case !j.runs():
			err = api.Errorf(api.ErrConflict, "%s was requeued: it starts over", jobNumber(j.SlurmID))
		case j.Step <= made.Step:
			return false
		}
		if o := j.offer(); made.Step == 0 && o != nil && o.State == offerAccepted { // lent nodes are still being given back
			return false
		}
		has := c.allocation(j)
		a.Has = &has
	}
	c.emit(Reply{ID: k.ID, Change: &a, Err: err})
	return true
}

// changeOf returns the request and plan of a job, for the answer to a change.
func (c *Core) changeOf(j *job) api.Change {
	a := api.Change{Job: j.SlurmID, Step: j.Step, Profile: j.Profile.String(), Plan: []api.Span{}}
	if j.isMalleable() {
		a.Bounds = request.BoundsOf(j.Profile, j.Malleable.Max).String()
	}
	for i := max(j.Step-1, 0); i < len(j.plan); i++ {
		p := j.plan[i]
		a.Plan = append(a.Plan, api.Span{Step: i + 1, Start: c.wall(time.Unix(p.start, 0)), End: c.wall(time.Unix(p.end, 0)),
			Nodes: j.Profile[i].Nodes, NodeList: slurmctl.CompressNodes(p.nodes)})
	}
	return a
}

// checkChange returns an error if a job cannot be changed now, or the request is not for its current step.
func (c *Core) checkChange(j *job, req *api.ChangeRequest) error {
	conflict := func(format string, args ...any) error {
		return api.Errorf(api.ErrConflict, "%s %s", jobNumber(j.SlurmID), fmt.Sprintf(format, args...))
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
	case !j.mode.resizes:
		return conflict("is a chain: its steps are Slurm jobs that are submitted already; cancel it and submit another")
	case j.ending:
		return conflict("is about to end")
	case j.isSuspended():
		return conflict("is suspended by Slurm")
	}
	if j.State == row.Running {
		c.believe(j, req.From)
	}
	if req.From > 0 && j.runs() && req.From != j.Step {
		return conflict("is in step %d, not %d (evaluate what evosctl env prints, and EVO_STEP is right)", j.Step, req.From)
	}
	return nil
}

// target returns the job as changed by the request, or why the request is invalid.
func (c *Core) target(j *job, req *api.ChangeRequest) (*target, error) {
	if err := c.checkChange(j, req); err != nil {
		return nil, err
	}
	values, copied := *j.Job, *j
	t := &target{job: &copied, most: mostOf(j)}
	values.Moldable = nil // its alternatives no longer apply
	t.job.Job = &values
	t.plan = slices.Clone(j.plan)
	if j.lapsed() {
		t.plan = nil
	}
	var err error
	switch {
	case req.Update != nil:
		err = c.toUpdate(t, *req.Update)
	case req.Grow != nil:
		err = c.toGrow(t, *req.Grow)
	default:
		err = c.toShrink(t, *req.Shrink)
	}
	if err != nil {
		return nil, err
	}
	t.Profile = t.floored()
	if err := request.CheckSteps(t.Profile); err != nil {
		return nil, api.Errorf(api.ErrInvalid, "%s with its steps up to now: %v", jobNumber(j.SlurmID), err)
	}
	if m := j.Malleable; m != nil {
		for _, step := range t.Profile[j.Step:] {
			if !m.Sizes.Has(step.Nodes) {
				return nil, api.Errorf(api.ErrInvalid, "%s would have %d nodes, which is none of its sizes (%v)", jobNumber(j.SlurmID), step.Nodes, m.Sizes)
			}
		}
	}
	t.Malleable = rebound(j.Malleable, t.Profile, j.Step, t.most)
	t.overdue, t.kept = 0, nil
	return t, nil
}

// passed returns how many seconds the current step of a running job has lasted so far.
func (c *Core) passed(j *job) int64 { return max(c.now.Unix()-j.StepStarted.Unix(), 1) }

// checkSeconds checks durations in a request.
func checkSeconds(names string, all ...int64) error {
	for _, s := range all {
		if s < 0 || s > planner.MaxDuration {
			return api.Errorf(api.ErrInvalid, "%s: %d seconds", names, s)
		}
	}
	return nil
}

func (c *Core) toUpdate(t *target, u api.Update) error {
	if err := checkSeconds("--current, --wait", u.Current, u.Wait); err != nil {
		return err
	}
	var coming planner.Profile
	if u.Profile != "" {
		var err error
		if coming, t.most, err = comingOf(t.job, u.Profile, len(c.snapshot.nodes)); err != nil {
			return api.Errorf(api.ErrInvalid, "--profile: %v", err)
		}
	}
	switch {
	case coming == nil && u.Current == 0:
		return api.Errorf(api.ErrInvalid, "nothing to change: set --profile, --current, or both")
	case u.Current > 0 && t.State != row.Running:
		return api.Errorf(api.ErrConflict, "--current: %s is in no step at present", jobNumber(t.SlurmID))
	case u.Wait > 0 && !t.runs():
		return api.Errorf(api.ErrInvalid, "--wait: a job that has not begun is planned for when it can begin")
	}
	t.wait, t.words = u.Wait, "update"
	over := slices.Clone(t.Profile[:t.Step])
	if coming == nil {
		coming = t.Profile[t.Step:]
	} else {
		t.words += " to " + request.BoundsOf(coming, t.most).String()
	}
	if u.Current > 0 {
		over[t.Step-1].Duration = c.passed(t.job) + u.Current
		t.words += fmt.Sprintf(", the present step for %v more", time.Duration(u.Current)*time.Second)
	}
	t.Profile = slices.Concat(over, coming)
	return nil
}

// inStep checks that a job is in a step that may end now for another size.
func inStep(t *target) error {
	conflict := func(format string, args ...any) error {
		return api.Errorf(api.ErrConflict, "%s %s", jobNumber(t.SlurmID), fmt.Sprintf(format, args...))
	}
	switch has := len(t.nodes()); {
	case !t.runs():
		return conflict("has not begun: change its profile (evosctl update)")
	case t.State == row.Waiting:
		return conflict("has ended step %d and waits for the next one's nodes: evosctl next goes on waiting", t.Step)
	case has-len(t.lent()) != t.needs():
		return conflict("has %d of its step's %d nodes at present", has, t.Profile[t.Step-1].Nodes)
	}
	return nil
}

// cut ends the current step of a target now, and returns how much of its time was left.
func (c *Core) cut(t *target) (over planner.Profile, left int64) {
	over = slices.Clone(t.Profile[:t.Step])
	left = t.expected() - c.now.Unix()
	over[t.Step-1].Duration = c.passed(t.job)
	t.ends, t.State, t.StepEnded = true, row.Waiting, c.now
	return over, max(left, 0)
}

// checkGrow returns an error if the request to grow is invalid, or no step is running.
func checkGrow(t *target, g api.Grow) error {
	if err := checkSeconds("--for, --wait", g.For, g.Wait); err != nil {
		return err
	}
	switch {
	case g.Nodes < 1 || g.Nodes > planner.MaxNodes:
		return api.Errorf(api.ErrInvalid, "to grow by %d nodes: want at least 1", g.Nodes)
	case g.Min < 0 || g.Min > g.Nodes:
		return api.Errorf(api.ErrInvalid, "--min=%d: want 1 to %d", g.Min, g.Nodes)
	}
	return inStep(t)
}

func (c *Core) toGrow(t *target, g api.Grow) error {
	if err := checkGrow(t, g); err != nil {
		return err
	}
	has, least := len(t.nodes()), t.Profile[t.Step-1].Nodes
	if lent := t.lent(); len(lent) > 0 && c.pressing.any(lent) {
		return api.Errorf(api.ErrConflict, "%s must give back %s: stock jobs wait for these lent nodes", jobNumber(t.SlurmID), slurmctl.CompressNodes(lent))
	}
	coming := t.Profile[t.Step:]
	over, left := c.cut(t)
	lasts := g.For
	if lasts == 0 {
		lasts = left
	}
	if lasts == 0 {
		return api.Errorf(api.ErrInvalid, "the time of step %d is over: set --for", t.Step)
	}
	t.grown, t.wait, t.words = len(over), g.Wait, fmt.Sprintf("grow by %d for %v", g.Nodes, time.Duration(lasts)*time.Second)
	t.fewest = has + g.Nodes
	if g.Min > 0 {
		t.fewest = has + g.Min
		t.words += fmt.Sprintf(", at least by %d", g.Min)
	}
	most := has + g.Nodes
	if m := t.Malleable; m != nil && m.Sizes.Floor(most) >= t.fewest {
		most = m.Sizes.Floor(most)
	}
	t.Profile = append(over, planner.Step{Duration: lasts, Nodes: most})
	if left > lasts {
		t.Profile = append(t.Profile, planner.Step{Duration: left - lasts, Nodes: least})
		if t.Malleable != nil { // malleable within the bounds of the ended step
			t.most = append([]int{t.mostOf(t.Step)}, t.most...)
		}
	}
	t.Profile = append(t.Profile, coming...)
	if t.Claim > 0 && g.Wait == 0 { // within its claim the job gets the nodes in finite time
		t.wait = planner.MaxDuration
	}
	return nil
}

func (c *Core) toShrink(t *target, sh api.Shrink) error {
	if err := checkSeconds("--for", sh.For); err != nil {
		return err
	}
	if err := inStep(t); err != nil {
		return err
	}
	nodes := t.nodes()
	by := sh.Nodes
	switch {
	case sh.Nodes != 0 && len(sh.List) > 0, sh.Nodes == 0 && len(sh.List) == 0:
		return api.Errorf(api.ErrInvalid, "set how many nodes to give back, or which")
	case len(sh.List) > 0:
		by = len(slices.Compact(slices.Sorted(slices.Values(sh.List))))
		if bad := Without(sh.List, nodes); len(bad) > 0 {
			return api.Errorf(api.ErrInvalid, "the job does not have %s", slurmctl.CompressNodes(bad))
		}
		if by != len(sh.List) {
			return api.Errorf(api.ErrInvalid, "a node is listed twice")
		}
		if why := t.whyBound(sh.List); why != "" {
			return api.Errorf(api.ErrInvalid, "%s and cannot be given back before the end", why)
		}
	case by < 0:
		return api.Errorf(api.ErrInvalid, "to shrink by %d nodes: want at least 1", by)
	}
	if by >= len(nodes) {
		return api.Errorf(api.ErrInvalid, "to shrink by %d nodes: the job has %d, and keeps one", by, len(nodes))
	}
	coming := slices.Clone(t.Profile[t.Step:])
	over, left := c.cut(t)
	t.release, t.words = sh.List, fmt.Sprintf("shrink by %d", by)
	if sh.For > 0 {
		left = sh.For
		t.words += fmt.Sprintf(" for %v", time.Duration(left)*time.Second)
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

// makeChange applies a planned change to a job.
func (c *Core) makeChange(j *job, t *target, id string) {
	was := restorable{Job: *j.Job, reached: j.reached, release: j.release, kept: j.kept, overdue: j.overdue, needsReplan: j.needsReplan, plan: j.plan, id: id, words: t.words}
	from := j.Profile.String()
	step := 0
	if j.reached = j.Step; t.ends {
		step = j.Step
		j.State, j.StepEnded, j.release = row.Waiting, c.now, t.release
		c.event(j, "step ended", map[string]any{"step": j.Step, "expected": c.wallSecond(j.expected())})
	}
	if t.behind {
		j.Behind = c.now
	}
	j.Profile, j.Moldable, j.Malleable = t.Profile, nil, t.Malleable
	j.Changes = append(slices.Clone(j.Changes[max(len(j.Changes)-mostChanges+1, 0):]), row.Change{ID: id, Step: step})
	j.kept, j.overdue, j.needsReplan, j.warned, j.unheldTold, j.reason = nil, 0, false, false, 0, reason{}
	j.extend, j.unwritten = j.runs(), true
	c.changeProfile(j)
	c.save(j)
	c.storePlan(j, t.plan)
	c.event(j, "changed", map[string]any{"asked": t.words, "from": from, "to": j.Profile.String()})
	c.logJob(j).WithField("profile", j.Profile.String()).Info("its request was changed: " + t.words)
	j.undo = &was
}

// restorable holds the state of a job before a change, in case Slurm refuses the change.
type restorable struct {
	Job         row.Job
	reached     int
	release     []string
	kept        *keptBack
	overdue     int64
	needsReplan bool
	plan        []plannedStep

	id, words string // of the change
}

// undoChange undoes a change that Slurm refused.
func (c *Core) undoChange(j *job, why error) {
	was := j.undo
	j.undo = nil
	*j.Job = was.Job
	c.setMode(j)
	j.reached, j.release, j.kept, j.overdue, j.needsReplan, j.reason = was.reached, was.release, was.kept, was.overdue, was.needsReplan, reason{}
	c.changeProfile(j)
	c.save(j)
	c.storePlan(j, was.plan)
	c.event(j, "change refused", map[string]any{"asked": was.words, "why": why.Error()})
	for _, k := range c.calling {
		if k.job == j && k.Change != nil && k.Change.ID == was.id {
			k.refused = api.Errorf(api.ErrConflict, "Slurm refused it, and nothing has changed: %v", why)
		}
	}
}

// changeProfile writes a job's changed profile to the database.
func (c *Core) changeProfile(j *job) {
	c.emit(SaveProfile{j.ID, j.Profile})
	if known, ok := c.known[j.id()]; ok {
		known.Steps = len(j.Profile)
		c.known[j.id()] = known
	}
}

// writeRequest writes the changed request of a job to Slurm. If the database is lost, the sidecar
// reads the request from the job's comment.
func (c *Core) writeRequest(j *job) {
	if j.busy || !c.work.room() || !c.work.roomFor(j.UID) || c.now.Before(j.retryAt) || j.State == row.Starting {
		return // actOn tries again
	}
	r := &j.record
	text, err := c.rewritten(j)
	if err != nil {
		c.notKept(j, err)
		return
	}
	u := slurmctl.JobUpdate{Comment: &text}
	if j.State == row.Queued {
		if n := j.Profile[0].Nodes; n != r.NumNodes {
			u.NumNodes = n
		}
		if need := c.limitNeeded(j); r.TimeLimit != slurmctl.Unlimited && need > r.TimeLimit {
			u.TimeLimit = need
		}
	}
	do := Update{Job: r.ID, Change: u}
	if u.NumNodes > 0 || u.TimeLimit > 0 { // limits of accounts and QOS do not apply to changes by root
		do.As = j.UID
	}
	c.do(j, "change", j.Profile.String(), KindRewrite, do, Args{})
}

// settleRewrite handles the outcome of writing a changed request.
func (c *Core) settleRewrite(j *job, p *Pending, o Outcome) {
	switch u := commandOf[Update](p).Change; {
	case o.Err == nil && u.Comment != nil:
		j.unwritten, j.undo, j.record.Comment = false, nil, *u.Comment
		if u.NumNodes > 0 {
			j.record.NumNodes = u.NumNodes
		}
		if u.TimeLimit > 0 {
			j.record.TimeLimit = u.TimeLimit
		}
	case o.Err == nil, outage(o.Err):
	default:
		c.notKept(j, o.Err)
	}
}

// rewritten returns the comment of a job with its current request.
func (c *Core) rewritten(j *job) (string, error) {
	return request.Rewrite(j.record.Comment, func(r request.Request) request.Request {
		if r.Profile == nil { // the profile is in the script, with options that the marker lacks
			r.ExpandLimit, r.Drive = j.ExpandLimit, drivemode.Mode(j.Drive)
		}
		r.Moldable, r.Malleable = nil, nil
		if m := j.Malleable; m != nil {
			r.Malleable = &request.Malleable{Max: m.Max, Sizes: m.Sizes, Grace: m.Grace, Speedup: m.Speedup}
		}
		r.Profile, r.Updated, r.Reached = j.Profile, j.Changes[len(j.Changes)-1].ID, nil
		if j.runs() {
			r.Profile = j.Profile[j.Step-1:]
			if r.Malleable != nil {
				r.Malleable.Max = r.Malleable.Max[j.Step-1:]
			}
			r.Reached = &request.Reached{Step: j.Step, After: max(j.StepStarted.Unix()-j.Started.Unix(), 0),
				First: j.Profile[0].Nodes, Peak: j.Profile[:max(j.Step-1, 1)].Peak(), Began: max(c.wallSecond(j.record.StartTime.Unix()), 0)}
		}
		return r
	})
}

// notKept handles that Slurm does not accept a job's changed request.
func (c *Core) notKept(j *job, why error) {
	j.unwritten = false
	if j.undo != nil {
		c.undoChange(j, why)
		return
	}
	j.note = "Slurm does not keep its changed request: " + why.Error()
	c.logJob(j).WithError(why).Warn("cannot save a changed request in Slurm; it would be lost with the database")
}

// mostRewrites is how often the sidecar rewrites a request that something else has overwritten.
const mostRewrites = 3

// before reports whether a job was requeued and has not come back to the step in its marker. It then
// needs its earlier steps, but the marker records only that they are over.
func (j *job) before(at *request.Reached) bool {
	return at != nil && (j.record.State == slurmctl.Pending && at.Step > 1 || j.runs() && at.Step > j.Step)
}

// checkWritten checks that a changed request is still in the job's comment. Slurmctld may have lost
// it in a crash, the sidecar may have been killed before writing it, or the job may have been requeued.
func (c *Core) checkWritten(j *job) {
	if len(j.Changes) == 0 || j.unwritten || j.rewrites >= mostRewrites || j.record.Comment == j.seenComment {
		return
	}
	j.seenComment = j.record.Comment
	if r, ok, err := c.mark(&j.record); ok && err == nil && r.Updated == j.Changes[len(j.Changes)-1].ID && !j.before(r.Reached) {
		return
	}
	j.rewrites++
	j.unwritten = true
}
