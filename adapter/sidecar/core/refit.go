package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// fixedOnly plans pools without queued jobs, for which the strategy does not matter.
var fixedOnly, _ = planner.StrategyByName("noX")

// overrunQuantum is how many more seconds each plan gives a step that lasts longer than planned.
const overrunQuantum = 5

// followPlans refits the running jobs whose plan no longer holds: a step lasts longer than planned, or other
// jobs use nodes of coming steps.
func (c *Core) followPlans(s *snapshot) {
	now := s.taken.Unix()
	margin := int64(c.cfg.Margin / time.Second)
	var others *occupancy
	var waits []*job
	for j := range c.each(c.active) {
		if !j.runs() || j.busy || j.kept != nil || j.touched.After(s.taken) {
			continue
		}
		if others == nil {
			others = c.foreign(s, now)
		}
		switch {
		case !j.heedsPinned():
			c.heedPinned(s, j, now)
		case j.lapsed():
		case len(j.plan) != len(j.Profile):
			c.refit(s, j, now, "it had no plan")
		case j.overruns(now - margin):
			if j.overdue == 0 {
				j.overdue = j.plan[j.Step-1].end
			}
			c.refit(s, j, now, "the step lasts longer than planned")
		case j.mayMoveUp(now):
			waits = append(waits, j)
		case c.lostNodes(s, others, j, now):
			c.refit(s, j, now, "nodes of its plan are taken or down")
		}
	}
	if len(waits) > 0 { // one per cycle, in turn: it takes as long as planning a change
		next := max(slices.IndexFunc(waits, func(j *job) bool { return j.ID > c.movedUp }), 0)
		c.movedUp = waits[next].ID
		c.moveUp(s, waits[next], now)
	}
}

// overruns reports whether a planned job's current step lasts past its planned end at a time, which allows for
// a short delay.
func (j *job) overruns(at int64) bool {
	return j.State == row.Running && j.plan[j.Step-1].end <= at && !(j.last() && j.record.State == slurmctl.Completing)
}

// mayMoveUp reports whether a job's next step may begin earlier than planned.
func (j *job) mayMoveUp(now int64) bool {
	return j.State == row.Waiting && (len(j.Changes) > 0 || j.mode.stepsAreJobs) && j.next() != nil && j.next().start > now+overrunQuantum
}

// lostNodes reports whether others use nodes that are planned for the job's coming steps at that time.
func (c *Core) lostNodes(s *snapshot, others *occupancy, j *job, now int64) bool {
	mine := setOf(j.nodes())
	for i := j.Step; i < len(j.plan); i++ {
		start, end := max(j.plan[i].start, now)-now, max(j.plan[i].end, now)-now
		for _, name := range j.plan[i].nodes {
			n, ok := s.index[name]
			if !ok {
				return true
			}
			if mine[name] {
				continue
			}
			for _, b := range others.claimed(others.busy[n], []int{n}, c.rankOf(&j.record)) {
				// a job about to end may be late by its margin
				if b.Start < end && start < b.End-int64(c.cfg.Margin/time.Second)-1 {
					return true
				}
			}
			needed := max(end, c.limitEnd(j, i, now, start))
			if j.mode.bringsNodes && (i == j.Step || !slices.Contains(j.plan[i-1].nodes, name)) {
				needed = max(needed, start+bringSeconds)
			}
			for _, b := range others.reserved[n] {
				if b.Start < needed && start < b.End {
					return true
				}
			}
		}
	}
	return false
}

// limitEnd returns how many seconds from now the time limit ends for the Slurm jobs that step i of a running
// job begins with, if it starts `start` seconds from now.
func (c *Core) limitEnd(j *job, i int, now, start int64) int64 {
	if j.mode.stepsAreJobs {
		return start + c.limitOf(j, i)
	}
	return j.reach(now)
}

// limitsLeft returns the limits of a running job's profile in refit: some steps for what the job has, then the
// coming steps.
func (c *Core) limitsLeft(j *job, now int64, steps int) []int64 {
	left := j.reach(now)
	if !j.mode.stepsAreJobs {
		return []int64{left}
	}
	if j.State == row.Waiting {
		left = 1 // the record is that of the next link
	}
	limits := make([]int64, steps)
	for i := range limits {
		if limits[i] = left; i >= steps-(len(j.Profile)-j.Step) {
			limits[i] = c.limitOf(j, i-steps+len(j.Profile))
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
func (s *snapshot) besideDrained(busy []planner.NodeBusy, pool, held []int) []planner.NodeBusy {
	return slices.DeleteFunc(busy, func(b planner.NodeBusy) bool {
		return b.Start == 0 && b.End == planner.Forever && !s.nodes[pool[b.Node]].Usable() && slices.Contains(held, b.Node)
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
	plan  []plannedStep // all steps; past steps are unchanged
	late  bool          // later than its expand limit allows
	unfit string        // why there is no plan
}

// fitting holds how to plan the rest of a running job.
type fitting struct {
	around func(origin int64) *occupancy // what is certain without the job
	// strict means that only this job may move: other jobs keep what they were promised, including nodes that this
	// job has. Otherwise they get these nodes once the job has given them back.
	strict bool
	wait   int64 // how many seconds longer than its expand limit allows its current step may last
	// notBefore is the Unix second before which it gets no nodes; 0: no restriction.
	notBefore int64
}

// refit replans the rest of a running job around everything that is certain without it. The current step
// continues for its remaining time (no longer than its expand limit allows). The job keeps its nodes, and
// other running jobs keep what they were promised. If the limit leaves no way, the job is delayed beyond it
// instead of stopped, and the event log says so. If there is still no plan because others were promised nodes
// that the job has, these others come after it, if they can: the job gives the nodes back only at its end, so
// each would wait for the other. If one of the others cannot, the job that began first comes first. Jobs that
// began later are planned after it, or lose their promise; and the job itself has no promise if it cannot be
// planned around the others. This order is always the same, so that plans do not change back and forth. There
// is one exception: a job that was promised a node that slurmctld does not release always comes after the job
// that has the node. refit returns why there is no plan, or "".
func (c *Core) refit(s *snapshot, j *job, now int64, why string) (unfit string) {
	before := j.unplanned
	j.unplanned = ""
	if unfit = c.replan(s, j, now, why); unfit == "" {
		return ""
	}
	after := c.waitFor(j)
	if c.replanBefore(s, j, after, now, why, true) {
		return ""
	}
	later := slices.DeleteFunc(slices.Clone(after), func(other *job) bool { return beganFirst(other, j) < 0 && !other.awaitsPinned(j) })
	if c.replanBefore(s, j, later, now, why, false) {
		return ""
	}
	j.reason = saying(whyNotReplanned, unfit)
	if len(after) > len(later) {
		j.reason.job = slices.MinFunc(after, beganFirst).SlurmID
	}
	text := j.reason.words()
	if j.unplanned = text; text != before { // refit runs in every cycle
		c.logJob(j).WithField("why", why).Warn(text)
	}
	return unfit
}

// beganFirst orders running jobs by when they began.
func beganFirst(a, b *job) int {
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.SlurmID, b.SlurmID))
}

// replan does what refit does without moving other jobs. It returns why there is no plan, or "".
func (c *Core) replan(s *snapshot, j *job, now int64, why string) (unfit string) {
	c.quiet.refitted = true
	r := c.fitBeside(s, j, now)
	if r.unfit == "" {
		c.refitted(j, now, why, r)
	}
	return r.unfit
}

// fitBeside plans the rest of a running job around what others were promised.
func (c *Core) fitBeside(s *snapshot, j *job, now int64) rest {
	f := fitting{around: func(origin int64) *occupancy {
		o := c.occupied(s, origin, j)
		c.addHeldUp(o, s)
		return o
	}}
	r := c.fitRest(s, j, now, f, false)
	if r.unfit != "" {
		r = c.fitRest(s, j, now, f, true)
	}
	return r
}

// replanBefore does what refit does with the jobs of `after` planned later, with what they have until then. If
// `all` is set, all of them must fit; otherwise those that do not fit lose their promise. It reports whether
// the job has a plan.
func (c *Core) replanBefore(s *snapshot, j *job, after []*job, now int64, why string, all bool) bool {
	if len(after) == 0 {
		return false
	}
	slices.SortFunc(after, beganFirst)
	r := c.fitRest(s, j, now, fitting{around: func(origin int64) *occupancy {
		o := c.foreign(s, origin)
		for _, other := range c.active {
			switch {
			case other == j || !other.runs() && other.State != row.Starting:
			case slices.Contains(after, other):
				c.addKept(o, s, other, now)
			default:
				c.addPromises(o, s, other, now)
			}
		}
		c.addFreed(o, s)
		c.addHeldUp(o, s)
		return o
	}}, true)
	if r.unfit != "" || all && !c.fitAfter(s, j, r, after, now) {
		return false
	}
	c.refitted(j, now, why, r)
	for _, other := range after {
		if c.replan(s, other, now, fmt.Sprintf("nodes of its plan stay with %s: %s", jobNumber(j.SlurmID), why)) != "" {
			c.yield(other, j)
		}
	}
	return true
}

// fitAfter reports whether jobs can be planned one after the other behind a job with its new plan. It changes
// nothing.
func (c *Core) fitAfter(s *snapshot, j *job, r rest, after []*job, now int64) bool {
	plans := make([][]plannedStep, len(after))
	for i, other := range after {
		plans[i] = other.plan
	}
	was := j.plan
	defer func() {
		j.plan = was
		for i, other := range after {
			other.plan = plans[i]
		}
	}()
	j.plan = r.plan
	for _, other := range after {
		r := c.fitBeside(s, other, now)
		if r.unfit != "" {
			return false
		}
		other.plan = r.plan
	}
	return true
}

// waitFor lists the running jobs that were promised nodes of j.
func (c *Core) waitFor(j *job) (all []*job) {
	have := j.nodes()
	for _, other := range c.active {
		if other == j || !other.runs() || other.busy || len(other.plan) != len(other.Profile) {
			continue
		}
		if slices.ContainsFunc(other.plan[other.Step:], func(p plannedStep) bool { return len(common(p.nodes, have)) > 0 }) {
			all = append(all, other)
		}
	}
	return all
}

// refitted stores the new plan.
func (c *Core) refitted(j *job, now int64, why string, r rest) {
	plan := r.plan
	if j.lapsed() {
		plan = plan[:j.Step]
	}
	was := int64(0)
	if len(j.plan) == len(plan) && j.Step < len(plan) {
		was = j.plan[j.Step].start
	}
	c.storePlan(j, plan)
	if j.State == row.Waiting || j.expected() > now { // but not for a step that overruns
		j.extend = true
	}
	if r.late && was != 0 && plan[j.Step].start > was {
		c.event(j, "delayed", map[string]any{"why": why, "step": j.Step + 1, "was": c.wallSecond(was), "start": c.wallSecond(plan[j.Step].start)})
		c.logJob(j).Warn("a planned growth is later than the job's expand limit allows: " + why)
	}
}

// fitRest plans the rest of a running job, ignoring its expand limit if `beyond`. It changes nothing.
func (c *Core) fitRest(s *snapshot, j *job, now int64, f fitting, beyond bool) rest {
	eligible, err := s.eligible(c.recordFor(s, j), j.gres)
	if err != nil {
		c.log.WithError(err).WithField("job", j.SlurmID).Warn("cannot determine the job's eligible nodes any more")
	}
	left := remainderOf(j, now)
	pool := left.pool(s, eligible)
	job := c.remainingJob(s, j, left, pool, f.wait, beyond)
	planned := c.planRemainder(s, j, left, f, pool, job)
	if planned.Unfit != "" {
		return rest{unfit: planned.Unfit}
	}
	return rest{plan: left.plan(s, j, pool, planned, c.margin()), late: beyond}
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
func remainderOf(j *job, now int64) remainder {
	coming := j.Profile[j.Step:]
	if !j.mode.carriesNodes && j.State == row.Waiting {
		return remainder{origin: now, profile: slices.Clone(coming), link: true}
	}
	left := remainder{origin: now, lasts: j.expected() - now, mine: j.own()}
	if j.State == row.Running {
		if left.lasts < 1 {
			left.lasts = overrunQuantum
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
	if pinned := j.pinned(); pinned != "" && slices.Contains(left.mine, pinned) {
		left.pinned, left.mine = pinned, Without(left.mine, []string{pinned})
		for i := range left.profile {
			left.profile[i].Nodes--
		}
	}
	return left
}

// pool returns the eligible nodes and those that the job has, without the pinned node.
func (left remainder) pool(s *snapshot, eligible []int) []int {
	pool := slices.Clone(eligible)
	for _, name := range left.mine {
		if i, ok := s.index[name]; ok && !slices.Contains(pool, i) {
			pool = append(pool, i)
		}
	}
	slices.Sort(pool)
	return slices.DeleteFunc(pool, func(i int) bool { return s.nodes[i].Name == left.pinned })
}

// remainingJob returns what is left of a running job as the planner sees it (see fitRest).
func (c *Core) remainingJob(s *snapshot, j *job, left remainder, pool []int, wait int64, beyond bool) planner.PoolJob {
	margin, limit := c.margin(), c.expandLimit(j)
	padded := planner.Pad(left.profile, margin)
	driver := -1
	if at := s.local(pool, []string{j.BatchHost}); len(at) == 1 && j.mode.scriptSpansSteps {
		driver = at[0]
	}
	release := j.release
	if len(release) == 0 && j.mode.growthsStayJobs {
		release = j.newestFirst()
	}
	job := planner.PoolJob{
		Job:   planner.Job{ID: "0", Submit: 0, Profile: padded, ExpandLimit: padLimit(left.profile, margin, limit)},
		Fixed: !left.link, Held: s.local(pool, left.mine), Driver: driver,
		Prefer: s.local(pool, j.preferred()), Release: s.local(pool, release), Limits: c.limitsLeft(j, left.origin, len(left.profile)),
	}
	if j.mode.bringsNodes {
		job.Bring = bringSeconds
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
func (c *Core) planRemainder(s *snapshot, j *job, left remainder, f fitting, pool []int, job planner.PoolJob) planner.Planned {
	o := f.around(left.origin)
	reserved := o.reservedOn(pool)
	planned, err := o.sparing(pool, c.rankOf(&j.record), func(to rank) ([]planner.Planned, error) {
		busy := s.besideDrained(o.window(pool, to), pool, job.Held)
		if !f.strict {
			busy = givenBack(busy, job.Held, job.Profile[0].Duration)
		}
		for i := range pool {
			if f.notBefore > left.origin && !slices.Contains(job.Held, i) {
				busy = append(busy, planner.NodeBusy{Node: i, Start: 0, End: f.notBefore - left.origin})
			}
		}
		planned, err := planner.Pool{Nodes: len(pool), Busy: busy, Reserved: reserved, Jobs: []planner.PoolJob{job}}.Plan(fixedOnly)
		if err == nil && planned[0].Unfit == "" && job.Fixed && (takes(planned[0], busy, f.strict) || c.promisedTo(s, o, left.pinned, to, planned[0].End())) {
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
func (left remainder) plan(s *snapshot, j *job, pool []int, planned planner.Planned, margin int64) []plannedStep {
	placed := planner.Unpad(planned.Placement, left.profile, margin)
	past, at := j.Step-1, placed.Start+left.origin
	if left.link {
		past = j.Step
	}
	plan := pastSteps(j, past)
	if left.link {
		plan[past-1].end = max(plan[past-1].start, min(plan[past-1].end, at))
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
			names = append(names, s.nodes[pool[n]].Name)
		}
		if left.pinned != "" {
			names = append(names, left.pinned)
			slices.SortFunc(names, func(a, b string) int { return s.index[a] - s.index[b] })
		}
		plan = append(plan, plannedStep{start: start, end: at, nodes: names})
	}
	return plan
}

// pastSteps returns the first n steps of a job as they were planned, or else as its profile has them.
func pastSteps(j *job, n int) []plannedStep {
	plan := make([]plannedStep, n, len(j.Profile))
	if len(j.plan) >= n {
		copy(plan, j.plan)
		return plan
	}
	for i, end := n-1, j.StepStarted.Unix(); i >= 0; i-- { // long past
		plan[i] = plannedStep{start: end - j.Profile[i].Duration, end: end}
		end = plan[i].start
	}
	return plan
}
