package refit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/couple"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// FixedOnly plans pools without queued jobs, for which the strategy does not matter.
var FixedOnly, _ = planner.StrategyByName("noX")

// OverrunQuantum is how many more seconds each plan gives a step that lasts longer than planned.
const OverrunQuantum = 5

// FollowPlans refits the running jobs whose plan no longer holds: a step lasts longer than planned, or other
// jobs use nodes of coming steps.
func FollowPlans(c *state.Core, s *state.Snapshot) {
	now := s.Taken.Unix()
	margin := int64(c.Config.Margin / time.Second)
	var others *msg.Occupancy
	var waits []*state.Job
	for j := range plan.Each(c, c.Active) {
		if !j.Runs() || j.Busy || j.Kept != nil || j.Touched.After(s.Taken) {
			continue
		}
		if j.BestEffort() {
			PlanBestEffort(c, j)
			continue
		}
		if others == nil {
			others = Foreign(c, s, now)
		}
		switch {
		case !slurm.HeedsPinned(j):
			heedPinned(c, s, j, now)
		case j.Lapsed():
		case len(j.Plan) != len(j.Profile):
			Refit(c, s, j, now, "it had no plan")
		case overruns(c, j, now, margin):
			if j.Overdue == 0 {
				j.Overdue = j.Plan[j.Step-1].End
			}
			Refit(c, s, j, now, "the step lasts longer than planned")
		case mayMoveUp(c, j, now):
			waits = append(waits, j)
		case LostNodes(c, s, others, j, now):
			Refit(c, s, j, now, "nodes of its plan are taken or down")
		}
	}
	moveUpNext(c, s, waits, now)
}

// moveUpNext moves up one of the jobs that wait, in turn: it takes as long as planning a change.
func moveUpNext(c *state.Core, s *state.Snapshot, waits []*state.Job, now int64) {
	if len(waits) == 0 {
		return
	}
	next := max(slices.IndexFunc(waits, func(j *state.Job) bool { return j.ID > c.MovedUp }), 0)
	c.MovedUp, c.Moves = waits[next].ID, c.Moves || len(waits) > 1
	moveUp(c, s, waits[next], now)
}

// overruns reports whether a planned job's current step lasts past its planned end by a margin.
func overruns(c *state.Core, j *state.Job, now, margin int64) bool {
	return j.State == row.Running && c.ReachedSecond(now, j.Plan[j.Step-1].End+margin) && !(j.Last() && j.Record.State == slurmctl.Completing)
}

// mayMoveUp reports whether a job's next step may begin earlier than planned.
func mayMoveUp(c *state.Core, j *state.Job, now int64) bool {
	return j.State == row.Waiting && (len(j.Changes) > 0 || j.Mode.StepsAreJobs) && j.Next() != nil && !c.ReachedSecond(now, j.Next().Start-OverrunQuantum)
}

// LostNodes reports whether others use nodes that are planned for the job's coming steps at that time.
func LostNodes(c *state.Core, s *state.Snapshot, others *msg.Occupancy, j *state.Job, now int64) bool {
	mine := msg.SetOf(j.Nodes())
	for i := j.Step; i < len(j.Plan); i++ {
		start, end := c.Until(now, j.Plan[i].Start)-now, c.Since(now, j.Plan[i].End)-now
		for _, name := range j.Plan[i].Nodes {
			n, ok := s.Index[name]
			if !ok {
				return true
			}
			if mine[name] {
				continue
			}
			for _, b := range others.Claimed(others.Busy[n], []int{n}, slurm.RankOf(c, &j.Record)) {
				// a job about to end may be late by its margin
				if b.Start < end && start < b.End-int64(c.Config.Margin/time.Second)-1 {
					return true
				}
			}
			if !slurm.Within(s, j, name, now+start, now+end) {
				return true
			}
			needed := max(end, limitEnd(c, j, i, now, start))
			if j.Mode.BringsNodes && (i == j.Step || !slices.Contains(j.Plan[i-1].Nodes, name)) {
				needed = max(needed, start+plan.BringSeconds)
			}
			if slices.ContainsFunc(others.ReservedOn([]int{n}, j.Reservation), func(b planner.NodeBusy) bool { return b.Start < needed && start < b.End }) {
				return true
			}
		}
	}
	return false
}

// limitEnd returns how many seconds from now the time limit ends for the Slurm jobs that step i of a running
// job begins with, if it starts `start` seconds from now.
func limitEnd(c *state.Core, j *state.Job, i int, now, start int64) int64 {
	if j.Mode.StepsAreJobs {
		return start + LimitOf(c, j, i)
	}
	return slurm.Reach(c, j, now)
}

// limitsLeft returns the limits of a running job's profile in refit: some steps for what the job has, then the
// coming steps.
func limitsLeft(c *state.Core, j *state.Job, now int64, steps int) []int64 {
	left := slurm.Reach(c, j, now)
	if !j.Mode.StepsAreJobs {
		return []int64{left}
	}
	if j.State == row.Waiting {
		left = 1 // the record is that of the next link
	}
	limits := make([]int64, steps)
	for i := range limits {
		if limits[i] = left; i >= steps-(len(j.Profile)-j.Step) {
			limits[i] = LimitOf(c, j, i-steps+len(j.Profile))
		}
	}
	return limits
}

// givenBack returns what is busy if a job keeps some nodes until a time, whatever was promised to others
// before: the others get the nodes then.
func givenBack(busy []planner.NodeBusy, held []int, until int64) []planner.NodeBusy {
	rest := busy[:0:0]
	for _, b := range busy {
		if slices.Contains(held, b.Node) {
			b.Start = max(b.Start, until)
		}
		if b.Start < b.End {
			rest = append(rest, b)
		}
	}
	return rest
}

// besideDrained returns what is busy in a pool, without unusable (for example, drained) nodes that a job
// holds. No other job gets such nodes, and the job has them until it gives them back.
func besideDrained(s *state.Snapshot, busy []planner.NodeBusy, pool, held []int) []planner.NodeBusy {
	return slices.DeleteFunc(busy, func(b planner.NodeBusy) bool {
		return b.Start == 0 && b.End == planner.Forever && !s.Nodes[pool[b.Node]].Usable() && slices.Contains(held, b.Node)
	})
}

// takes reports whether a running job's plan uses nodes while they are promised to others. The planner lets
// the job keep the nodes that it has, even if others wait for them. The current step counts only if `present`
// is set.
func takes(p planner.Planned, busy []planner.NodeBusy, present bool) bool {
	at := p.Start
	for k, step := range p.Steps {
		if end := at + step.Duration; k > 0 || present {
			for _, b := range busy {
				if b.Start < end && at < b.End {
					if _, has := slices.BinarySearch(p.Nodes[k], b.Node); has {
						return true
					}
				}
			}
		}
		at += step.Duration
	}
	return false
}

// rest is the replanned rest of a running job.
type rest struct {
	Plan  []msg.PlannedStep // all steps; past steps are unchanged
	late  bool              // later than its expand limit allows
	Unfit string            // why there is no plan
}

// Fitting holds how to plan the rest of a running job.
type Fitting struct {
	Around func(origin int64) *msg.Occupancy // what is certain without the job
	// strict means that only this job may move: other jobs keep what they were promised, including nodes that this
	// job has. Otherwise they get these nodes once the job has given them back.
	Strict bool
	Wait   int64 // how many seconds longer than its expand limit allows its current step may last
	// notBefore is the Unix second before which it gets no nodes; 0: no restriction.
	notBefore int64
}

// Refit replans the rest of a running job around everything that is certain without it. The current step
// continues for its remaining time (no longer than its expand limit allows). The job keeps its nodes, and
// other running jobs keep what they were promised. If the limit leaves no way, the job is delayed beyond it
// instead of stopped, and the event log says so. If there is still no plan because others were promised nodes
// that the job has, these others come after it, if they can: the job gives the nodes back only at its end, so
// each would wait for the other. If one of the others cannot, the job that began first comes first. Jobs that
// began later are planned after it, or lose their promise; and the job itself has no promise if it cannot be
// planned around the others. This order is always the same, so that plans do not change back and forth. There
// is one exception: a job that was promised a node that slurmctld does not release always comes after the job
// that has the node. refit returns why there is no plan, or "".
func Refit(c *state.Core, s *state.Snapshot, j *state.Job, now int64, why string) (unfit string) {
	before := j.Unplanned
	j.Unplanned = ""
	if unfit = replan(c, s, j, now, why); unfit == "" {
		return ""
	}
	after := waitFor(c, j)
	if replanBefore(c, s, j, after, now, why, true) {
		return ""
	}
	later := slices.DeleteFunc(slices.Clone(after), func(other *state.Job) bool { return beganFirst(other, j) < 0 && !slurm.AwaitsPinned(other, j) })
	if replanBefore(c, s, j, later, now, why, false) {
		return ""
	}
	cause := state.Saying(state.WhyNotReplanned, slurm.OutsideText(c, s, j, unfit))
	if len(after) > len(later) {
		cause.Job = slices.MinFunc(after, beganFirst).SlurmID
	}
	j.WaitsFor(cause)
	text := cause.Words()
	if j.Unplanned = text; text != before { // refit runs in every cycle
		c.LogJob(j).WithField("why", why).Warn(text)
	}
	return unfit
}

// beganFirst orders running jobs by when they began.
func beganFirst(a, b *state.Job) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.SlurmID, b.SlurmID))
}

// replan does what refit does without moving other jobs, except rivals. It returns why
// there is no plan, or "".
func replan(c *state.Core, s *state.Snapshot, j *state.Job, now int64, why string) (unfit string) {
	c.Quiet.Refitted = true
	r := fitBeside(c, s, j, now)
	if r.Unfit != "" {
		return r.Unfit
	}
	refitted(c, j, now, why, r)
	for _, other := range rivals(c, j) {
		if clash(j, other) && replan(c, s, other, now, "nodes of its plan are kept for "+msg.JobNumber(j.SlurmID)) != "" {
			yield(c, other, j, msg.JobNumber(j.SlurmID)+", which exceeds no step, is planned first")
		}
	}
	return ""
}

// fitBeside plans the rest of a running job around what others were promised. A job does not lose promised nodes or
// time to rivals: it avoids the nodes that they have, since nobody knows until when, and comes before their coming
// steps.
func fitBeside(c *state.Core, s *state.Snapshot, j *state.Job, now int64) rest {
	fit := func(less []*state.Job, long, beyond bool) rest {
		return fitRest(c, s, j, now, around(c, s, j, less, now, long), beyond)
	}
	r, less := fit(nil, false, false), rivals(c, j)
	if r.Unfit == "" && (len(less) == 0 || sameNodes(r.Plan, j.Plan, j.Step)) {
		return r
	}
	if len(less) > 0 {
		if best := fit(less, true, false); best.Unfit == "" {
			return best
		}
		if r.Unfit == "" {
			return r
		}
	}
	if r = fit(nil, false, true); len(less) == 0 {
		return r
	}
	return better(r, fit(less, false, true), j.Step)
}

// better returns the first plan, unless only the second exists or has the given step sooner.
func better(a, b rest, step int) rest {
	if b.Unfit == "" && (a.Unfit != "" || b.Plan[step].Start < a.Plan[step].Start) {
		return b
	}
	return a
}

// around has a job fit around everything that is certain without it. The jobs of `less` get nothing more. With
// `long`, they may keep what they have until their time limits; otherwise they give it back as planned.
func around(c *state.Core, s *state.Snapshot, j *state.Job, less []*state.Job, now int64, long bool) Fitting {
	return Fitting{Around: func(origin int64) *msg.Occupancy {
		o := Foreign(c, s, origin)
		for other := range plan.Each(c, c.Active) {
			switch {
			case other == j || !other.Runs() && other.State != row.Starting:
			case slices.Contains(less, other):
				addKept(c, o, s, other, now, long)
			default:
				AddPromises(c, o, s, other, s.Taken.Unix())
			}
		}
		addFreed(c, o, s)
		addHeldUp(c, o, s)
		return o
	}}
}

// rivals lists the planned jobs of users whose jobs exceed their steps, if j is of no such user: what such a user says
// of other jobs is not trusted either.
func rivals(c *state.Core, j *state.Job) (all []*state.Job) {
	exceeding := plan.Exceeding(c)
	if exceeding[j.UID] || len(j.Plan) != len(j.Profile) || j.Last() {
		return nil
	}
	for _, other := range c.Active {
		if exceeding[other.UID] && other.Runs() && !other.Busy && len(other.Plan) == len(other.Profile) {
			all = append(all, other)
		}
	}
	return all
}

// sameNodes reports whether two plans have the same nodes from a step on.
func sameNodes(a, b []msg.PlannedStep, from int) bool {
	return len(a) == len(b) && slices.EqualFunc(a[from:], b[from:], func(x, y msg.PlannedStep) bool { return msg.SameSet(x.Nodes, y.Nodes) })
}

// clash reports whether coming steps of two running jobs have nodes in common at the same time.
func clash(a, b *state.Job) bool {
	return slices.ContainsFunc(a.Plan[a.Step:], func(x msg.PlannedStep) bool {
		return slices.ContainsFunc(b.Plan[b.Step:], func(y msg.PlannedStep) bool {
			return x.Start < y.End && y.Start < x.End && len(msg.Common(x.Nodes, y.Nodes)) > 0
		})
	})
}

// replanBefore does what refit does with the jobs of `after` planned later, with what they have until then. If
// `all` is set, all of them must fit; otherwise those that do not fit lose their promise. It reports whether
// the job has a plan.
func replanBefore(c *state.Core, s *state.Snapshot, j *state.Job, after []*state.Job, now int64, why string, all bool) bool {
	if len(after) == 0 {
		return false
	}
	slices.SortFunc(after, beganFirst)
	r := fitRest(c, s, j, now, around(c, s, j, after, now, true), true)
	if r.Unfit != "" || all && !fitAfter(c, s, j, r, after, now) {
		return false
	}
	refitted(c, j, now, why, r)
	for _, other := range after {
		if replan(c, s, other, now, fmt.Sprintf("nodes of its plan stay with %s: %s", msg.JobNumber(j.SlurmID), why)) != "" {
			yield(c, other, j, whyAfter(other, j))
		}
	}
	return true
}

// fitAfter reports whether jobs can be planned one after the other behind a job with its new plan. It changes
// nothing.
func fitAfter(c *state.Core, s *state.Snapshot, j *state.Job, r rest, after []*state.Job, now int64) bool {
	defer j.Suppose(r.Plan)()
	for _, other := range after {
		r := fitBeside(c, s, other, now)
		if r.Unfit != "" {
			return false
		}
		defer other.Suppose(r.Plan)()
	}
	return true
}

// waitFor lists the running jobs that were promised nodes of j.
func waitFor(c *state.Core, j *state.Job) (all []*state.Job) {
	have := j.Nodes()
	for _, other := range c.Active {
		if other == j || !other.Runs() || other.Busy || len(other.Plan) != len(other.Profile) {
			continue
		}
		if slices.ContainsFunc(other.Plan[other.Step:], func(p msg.PlannedStep) bool { return len(msg.Common(p.Nodes, have)) > 0 }) {
			all = append(all, other)
		}
	}
	return all
}

// refitted stores the new plan.
func refitted(c *state.Core, j *state.Job, now int64, why string, r rest) {
	plan := r.Plan
	if j.Lapsed() {
		plan = plan[:j.Step]
	}
	was := int64(0)
	if len(j.Plan) == len(plan) && j.Step < len(plan) {
		was = j.Plan[j.Step].Start
	}
	c.StorePlan(j, plan)
	if j.State == row.Waiting || j.Expected() > now { // but not for a step that overruns
		j.MayExtend()
	}
	if r.late && was != 0 && plan[j.Step].Start > was {
		if c.Event(j, "delayed", map[string]any{"why": why, "step": j.Step + 1, "was": c.WallSecond(was), "start": c.WallSecond(plan[j.Step].Start)}) {
			c.LogJob(j).Warn("a planned growth is later than the job's expand limit allows: " + why)
		}
	}
}

// fitRest plans the rest of a running job, ignoring its expand limit if `beyond`. It changes nothing.
func fitRest(c *state.Core, s *state.Snapshot, j *state.Job, now int64, f Fitting, beyond bool) rest {
	eligible, err := slurm.EligibleBeside(c, s, j)
	if err != nil {
		c.Log.WithError(err).WithField("job", j.SlurmID).Warn("cannot determine the job's eligible nodes any more")
	}
	if some := slurm.Preferred(s, j, eligible); len(some) > 0 && len(some) < len(eligible) {
		best, any := fitOn(c, s, j, now, f, beyond, some), fitOn(c, s, j, now, f, beyond, eligible)
		if best.Unfit == "" && (any.Unfit != "" || !later(best.Plan, any.Plan, j.Step)) {
			return best
		}
		return any
	}
	return fitOn(c, s, j, now, f, beyond, eligible)
}

// Suit plans the rest of a job of coupled codes again if other nodes should leave it at the end of its step than planned. It
// keeps the plan if no step could begin as early.
func Suit(c *state.Core, s *state.Snapshot, j *state.Job, now int64) {
	if !couple.Misplaced(j) {
		return
	}
	if r := fitBeside(c, s, j, now); r.Unfit == "" && !later(r.Plan, j.Plan, j.Step) && len(r.Plan) == len(j.Plan) {
		refitted(c, j, now, "its components need other nodes", r)
	}
}

// later reports whether any step of a plan begins later than in another one, from a step on.
func later(a, b []msg.PlannedStep, from int) bool {
	for k := from; k < len(a) && k < len(b); k++ {
		if a[k].Start > b[k].Start {
			return true
		}
	}
	return false
}

// fitOn plans the rest of a running job on some nodes, beside those that it has.
func fitOn(c *state.Core, s *state.Snapshot, j *state.Job, now int64, f Fitting, beyond bool, eligible []int) rest {
	left := remainderOf(j, now)
	pool := left.pool(s, eligible)
	job := remainingJob(c, s, j, left, pool, f.Wait, beyond)
	planned := planRemainder(c, s, j, left, f, pool, job)
	if planned.Unfit != "" {
		return rest{Unfit: planned.Unfit}
	}
	return rest{Plan: left.plan(s, j, pool, planned, slurm.Margin(c)), late: beyond}
}

// remainder holds what is left of a running job from its current step on.
type remainder struct {
	origin  int64           // Unix second at which it begins
	lasts   int64           // seconds of its first step
	profile planner.Profile // what the job has, then its coming steps; without the pinned node
	mine    []string        // what the job has, without the pinned node
	pinned  string          // the pinned node, which all steps keep; "" if the job has none
	short   bool            // nodes were lost: the rest of the step must still get its nodes
	link    bool            // the job has no nodes: Slurm took those of the ended link
}

// remainderOf returns what is left of a running job.
func remainderOf(j *state.Job, now int64) remainder {
	coming := j.Profile[j.Step:]
	if !j.Mode.CarriesNodes && j.State == row.Waiting {
		return remainder{origin: now, profile: slices.Clone(coming), link: true}
	}
	left := remainder{origin: now, lasts: j.Expected() - now, mine: Own(j)}
	if j.State == row.Running {
		if left.lasts < 1 {
			left.lasts = OverrunQuantum
		}
		if step := j.Profile[j.Step-1]; len(left.mine) < step.Nodes {
			left.short = true
			coming = slices.Concat(planner.Profile{{Duration: left.lasts, Nodes: step.Nodes}}, coming)
		}
	}
	if left.short || j.State == row.Waiting {
		left.origin, left.lasts = now-1, 1 // what it has is over: the next step may begin now
	}
	left.profile = slices.Concat(planner.Profile{{Duration: left.lasts, Nodes: len(left.mine)}}, coming)
	if pinned := slurm.Pinned(j); pinned != "" && slices.Contains(left.mine, pinned) {
		left.pinned, left.mine = pinned, msg.Without(left.mine, []string{pinned})
		for i := range left.profile {
			left.profile[i].Nodes--
		}
	}
	return left
}

// pool returns the eligible nodes and those that the job has, without the pinned node.
func (left remainder) pool(s *state.Snapshot, eligible []int) []int {
	pool := slices.Clone(eligible)
	for _, name := range left.mine {
		if i, ok := s.Index[name]; ok && !slices.Contains(pool, i) {
			pool = append(pool, i)
		}
	}
	slices.Sort(pool)
	return slices.DeleteFunc(pool, func(i int) bool { return s.Nodes[i].Name == left.pinned })
}

// remainingJob returns what is left of a running job as the planner sees it (see fitRest).
func remainingJob(c *state.Core, s *state.Snapshot, j *state.Job, left remainder, pool []int, wait int64, beyond bool) planner.PoolJob {
	margin, limit := slurm.Margin(c), plan.ExpandLimit(c, j)
	padded := planner.Pad(left.profile, margin)
	driver := -1
	if at := slurm.Local(s, pool, []string{j.BatchHost}); len(at) == 1 && j.Mode.ScriptSpansSteps {
		driver = at[0]
	}
	release := j.Release
	if len(release) == 0 {
		release = couple.Leaving(j)
	}
	if len(release) == 0 && j.Mode.GrowthsStayJobs {
		release = j.NewestFirst()
	}
	job := planner.PoolJob{
		Job:   planner.Job{ID: "0", Submit: 0, Profile: padded, ExpandLimit: msg.PadLimit(left.profile, margin, limit)},
		Fixed: !left.link, Held: slurm.Local(s, pool, left.mine), Driver: driver,
		Prefer: slurm.Local(s, pool, preferred(j)), Release: slurm.Local(s, pool, release), Limits: limitsLeft(c, j, left.origin, len(left.profile)),
	}
	if j.Mode.BringsNodes {
		job.Bring = plan.BringSeconds
	}
	switch {
	case beyond:
		job.ExpandLimit = planner.Infinite
	case !left.link:
		most := planner.Forever
		if stretch := limit.Stretch(j.Profile[j.Step-1].Duration); stretch != planner.Forever {
			most = max(left.lasts, j.StepStarted.Unix()+stretch-left.origin) + wait + padded[0].Duration - left.lasts
		}
		job.MaxDuration = []int64{most}
	}
	return job
}

// planRemainder plans what is left of a running job around what is certain without it.
func planRemainder(c *state.Core, s *state.Snapshot, j *state.Job, left remainder, f Fitting, pool []int, job planner.PoolJob) planner.Planned {
	o := f.Around(left.origin)
	reserved := o.ReservedOn(pool, j.Reservation)
	planned, err := o.Sparing(pool, slurm.RankOf(c, &j.Record), func(to msg.Rank) ([]planner.Planned, error) {
		busy := besideDrained(s, append(o.Window(pool, to), o.Outside(pool, j.Reservation)...), pool, job.Held)
		if !f.Strict {
			busy = givenBack(busy, job.Held, job.Profile[0].Duration)
		}
		for i := range pool {
			if f.notBefore > left.origin && !slices.Contains(job.Held, i) {
				busy = append(busy, planner.NodeBusy{Node: i, Start: 0, End: f.notBefore - left.origin})
			}
		}
		planned, err := planner.Pool{Nodes: len(pool), Busy: busy, Reserved: reserved, Jobs: []planner.PoolJob{job}, Switches: slurm.SwitchesOf(c, s, pool)}.Plan(FixedOnly)
		if err == nil && planned[0].Unfit == "" && job.Fixed && (takes(planned[0], busy, f.Strict) || slurm.PromisedTo(c, s, o, left.pinned, to, planned[0].End())) {
			planned[0].Unfit = "nodes that it keeps are promised to others"
		}
		return planned, err
	})
	if err != nil {
		return planner.Planned{Unfit: err.Error()}
	}
	return planned[0]
}

// plan returns the job's past steps, and the remainder as planned in a pool.
func (left remainder) plan(s *state.Snapshot, j *state.Job, pool []int, planned planner.Planned, margin int64) []msg.PlannedStep {
	placed := planner.Unpad(planned.Placement, left.profile, margin)
	past, at := j.Step-1, placed.Start+left.origin
	if left.link {
		past = j.Step
	}
	plan := pastSteps(j, past)
	if left.link {
		plan[past-1].End = max(plan[past-1].Start, min(plan[past-1].End, at))
	}
	for k, step := range placed.Steps {
		start := at
		at += step.Duration
		if left.short && k == 0 {
			continue // until the current step has its nodes again
		}
		if len(plan) == j.Step-1 {
			start = j.StepStarted.Unix()
		}
		names := make([]string, 0, len(planned.Nodes[k])+1)
		for _, n := range planned.Nodes[k] {
			names = append(names, s.Nodes[pool[n]].Name)
		}
		if left.pinned != "" {
			names = append(names, left.pinned)
			slices.SortFunc(names, func(a, b string) int { return s.Index[a] - s.Index[b] })
		}
		plan = append(plan, msg.PlannedStep{Start: start, End: at, Nodes: names})
	}
	return plan
}

// pastSteps returns the first n steps of a job as they were planned, or else as its profile has them.
func pastSteps(j *state.Job, n int) []msg.PlannedStep {
	plan := make([]msg.PlannedStep, n, len(j.Profile))
	if len(j.Plan) >= n {
		copy(plan, j.Plan)
		return plan
	}
	for i, end := n-1, j.StepStarted.Unix(); i >= 0; i-- { // long past
		plan[i] = msg.PlannedStep{Start: end - j.Profile[i].Duration, End: end}
		end = plan[i].Start
	}
	return plan
}

// preferred lists the nodes on which its coming steps should run: first the nodes that it has beyond its plan,
// then the nodes of its plan so far. If these nodes are enough for its next step, that step needs no other
// ones. With others, the job would have more than it may until it has given as many back.
func preferred(j *state.Job) []string {
	lent, planned := Lent(j), j.Planned()
	if next := j.Next(); next != nil && len(lent) > 0 && j.State == row.Waiting {
		if have := j.Nodes(); len(have) >= len(next.Nodes) {
			planned = msg.Without(planned, msg.Without(next.Nodes, have))
		}
	}
	return append(lent, msg.Without(planned, lent)...)
}
