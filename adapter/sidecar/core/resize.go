package core

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// endStep is called when a job's step has ended, by the application or by the sidecar.
func (c *Core) endStep(j *job, now time.Time) {
	j.State, j.StepEnded, j.reason, j.overdue = row.Waiting, now, reason{}, 0
	gaveUp := j.kept != nil && j.kept.givenUp
	if gaveUp {
		j.kept, j.failures, j.failing, j.retryAt = nil, 0, time.Time{}, time.Time{}
	}
	c.save(j)
	c.event(j, "step ended", map[string]any{"step": j.Step, "expected": c.wallSecond(j.expected())})
	if c.snapshot == nil {
		return
	}
	if next := j.next(); next == nil {
		c.refit(c.snapshot, j, now.Unix(), j.whyAnew("the step"))
	} else if gaveUp || next.start > now.Unix() && len(next.nodes) > len(j.own()) || len(j.release) > 0 || len(j.lent()) > 0 && len(Without(next.nodes, j.nodes())) > 0 {
		c.refit(c.snapshot, j, now.Unix(), "the step ended early")
	}
}

// transition brings a job whose step has ended to the nodes of the next step. It depends only on what the job
// has and what it must have, so it can stop and continue at any point.
func (c *Core) transition(s *snapshot, j *job, now time.Time) {
	next := j.next()
	if next == nil {
		return
	}
	switch {
	case j.stillKept(now):
		j.reason = saying(whyKeptBack, j.kept.text)
		return
	case j.kept != nil:
		c.tryAgain(s, j, now)
		return
	case j.mode.stepsAreJobs:
		c.startLink(s, j, next, now)
		return
	}
	have := j.nodes()
	missing, surplus := Without(next.nodes, have), Without(have, next.nodes)
	switch {
	case len(missing) > 0:
		if next.start > now.Unix() && len(j.expanders) == 0 && !c.early(s, j, missing, now.Unix()) {
			j.reason = reason{kind: whyPlannedFor, nodes: len(missing), at: c.wall(time.Unix(next.start, 0))}
			if j.needsReplan {
				j.reason.text = j.whyAnew("the step before")
			}
			return
		}
		if !c.safeWith(s, j, now.Unix(), next.nodes) {
			j.reason = because(whyClaimsConflict)
			return
		}
		if extra := Without(surplus, c.keepsLent(j, next, surplus)); j.isMalleable() && len(extra) > 0 && j.canReturn(extra) {
			c.shrink(j, extra) // it never has more than it may have
			return
		}
		c.grow(s, j, j.Step+1, missing)
	default:
		if surplus = c.leaving(s, j, next, surplus); len(surplus) > 0 {
			c.shrink(j, surplus)
			return
		}
		c.beginStep(j, now)
	}
}

// leaving returns the nodes of a job's surplus that it gives back at the end of its step.
func (c *Core) leaving(s *snapshot, j *job, next *plannedStep, surplus []string) []string {
	surplus = Without(surplus, c.keepsLent(j, next, surplus))
	if j.canReturn(surplus) {
		return surplus
	}
	j.release = nil // by the plan; without a plan, the newest go first
	c.refit(s, j, c.now.Unix(), "its nodes are given back by companions")
	if next = j.next(); next != nil {
		surplus = Without(j.nodes(), next.nodes)
	}
	if j.mode.shrinksInPart {
		return surplus
	}
	return touched(j.held, surplus) // the plan has a part of what was lent; nodes of the base job stay
}

// early reports whether a growth may happen before its time: the nodes are free, and they are not promised to
// another job until then.
func (c *Core) early(s *snapshot, j *job, nodes []string, now int64) bool {
	if !s.free(nodes) {
		return false
	}
	for _, other := range c.active {
		if other == j || other.kept != nil || !other.runs() && other.State != row.Starting {
			continue
		}
		if slices.ContainsFunc(other.coming(), func(p plannedStep) bool {
			return p.end > now && p.start < j.next().start && len(common(nodes, p.nodes)) > 0
		}) {
			return false
		}
	}
	for _, r := range c.reservations {
		if own, ours := parseHold(r); ours && own.job == j.id() {
			continue
		}
		if r.Start.Unix() < j.next().start && r.End.Unix() > now && len(common(nodes, r.Nodes)) > 0 {
			return false
		}
	}
	return true
}

// beginStep is called once the job has the nodes of its next step.
func (c *Core) beginStep(j *job, at time.Time) {
	planned := plannedStep{start: at.Unix()}
	if next := j.next(); next != nil {
		planned = *next
		plan := slices.Clone(j.plan) // actual times; the rest is replanned, except for a chain
		plan[j.Step-1].end = max(at.Unix(), plan[j.Step-1].start)
		plan[j.Step].start = plan[j.Step-1].end
		for i := j.Step; i < len(plan); i++ {
			plan[i].start = max(plan[i].start, plan[i-1].end)
			plan[i].end = max(plan[i].end, plan[i].start)
		}
		c.storePlan(j, plan)
	} else {
		c.storePlan(j, nil) // Slurm began a chain's link by itself: see followPlans
	}
	late := max(at.Sub(Later(time.Unix(planned.start, 0), j.StepEnded)), 0)
	j.Step++
	j.State, j.StepStarted, j.StepEnded = row.Running, at, time.Time{}
	j.release, j.reason, j.warned, j.kept, j.keptTimes = nil, reason{}, false, nil, 0
	j.overdue, j.needsReplan = 0, false
	c.save(j)
	c.saveParts(j)
	c.recordAllocation(j, at)
	c.event(j, "step begun", map[string]any{"step": j.Step, "planned": c.wallSecond(planned.start), "nodes": slurmctl.CompressNodes(j.nodes())})
	c.logJob(j).WithField("nodes", slurmctl.CompressNodes(j.nodes())).WithField("late", late.Seconds()).Info("step begun")
	if c.snapshot != nil && planned.start != at.Unix() && (!j.mode.stepsAreJobs || at.Unix() > planned.start+c.margin()) {
		c.refit(c.snapshot, j, c.now.Unix(), "the step began at another time than planned")
	}
	c.notify(j)
}

// grow brings the nodes of a step to a job with an expander that starts in the hold on them.
func (c *Core) grow(s *snapshot, j *job, step int, nodes []string) {
	if suspect := c.isSuspect(nodes); (suspect || !c.freeFor(s, nodes, &j.record)) && len(j.expanders) == 0 {
		if late := j.State == row.Waiting && c.now.Unix() > j.next().start+5; suspect || late || j.State == row.Running {
			c.refit(s, j, c.now.Unix(), "nodes of the growth are not free in time")
		}
		j.reason = saying(whyNodesAwaited, s.awaited(nodes, "waits for nodes that others have not given back yet"))
		if j.State == row.Waiting {
			c.awaitNodes(j.next().start, true)
		}
		return
	}
	if why := c.notBrought(s, j, step, nodes); why.kind != whyNothing {
		j.reason = why
		return
	}
	c.bring(j, step, nodes)
}

// notBrought returns why free nodes of a step cannot be brought to a job yet, if there is a reason.
func (c *Core) notBrought(s *snapshot, j *job, step int, nodes []string) reason {
	if j.asked == nil {
		return because(whyRequestUnread)
	}
	if why := c.notReady(s, j); why != "" {
		return saying(whyExpanderUnready, why)
	}
	if len(j.expanders) == 0 && !j.holdRetry.After(c.now) {
		if why := c.notHeld(j, step, nodes); why.kind != whyNothing {
			return why
		}
	}
	if p := s.partitions[partitionOf(j)]; c.rules.limits == nil && p.MinNodes > len(nodes) {
		if _, known := c.rulesSince(time.Time{}); !known {
			return because(whyPartitionUnread)
		}
	}
	if _, fits := c.expanderLimit(j, nodes); !fits && len(j.expanders) == 0 {
		return because(whyReservedSoon)
	}
	return reason{}
}

// notHeld returns why a job must wait for the hold on nodes of a step, if there is a reason.
func (c *Core) notHeld(j *job, step int, nodes []string) reason {
	r, held := c.holdFor(j, step)
	switch {
	case held && len(Without(nodes, r.Nodes)) > 0 && len(common(nodes, r.Nodes)) > 0:
		return because(whyHoldMoves) // Slurm would give it no nodes that the hold blocks
	case !held && c.covered(j, step, nodes) && j.State == row.Waiting:
		return because(whyHeldSoon) // the hold was requested just now
	}
	return reason{}
}

// parksKey identifies whose expanders are parked, and where. The core learns that from the output of a user's
// process, so it applies to no other user.
type parksKey struct {
	uid            uint32
	partition, qos string
}

// bring submits the expander that brings a job nodes, for a step or beyond its plan.
func (c *Core) bring(j *job, step int, nodes []string) {
	if !c.work.roomFor(j.UID) {
		j.reason = because(whyUserBusy)
		return
	}
	j.reason = reason{kind: whyGrows, nodes: len(nodes)}
	g := Grow{Base: j.id(), As: j.UID, Own: !c.site.Root && j.User != c.site.User, Merge: j.mode.mergesGrowths,
		NeedsDBD: slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig), Name: c.nextName(j, step).String(), Step: step, Nodes: nodes,
		Held: slices.Clone(j.held), StaysInHold: j.mode.staysInHold, StepMgr: j.mode.waitsForPrologs, Expanders: slices.Clone(j.expanders)}
	if r, ok := c.holdFor(j, step); ok && len(Without(nodes, r.Nodes)) == 0 {
		g.Hold, g.HoldBegins = r.Name, r.Start.After(c.now)
		if user := c.submitter(j); !slices.Contains(r.Users, user) {
			g.LetIn = []string{user}
		}
	}
	if g.Merge && len(common(nodes, j.gave)) > 0 {
		g.GaveBack = j.gaveAt
	}
	partition := partitionOf(j)
	c.askMore(j, &g, c.parksIn[parksKey{j.UID, partition, j.QOS}])
	g.StaysUntil = c.staysUntil(c.now, g.Request.TimeLimit)
	c.goThrough(j, &g)
	c.do(j, "grow", g.Name+" "+slurmctl.CompressNodes(nodes), KindGrow, g, Args{Nodes: len(j.nodes()) + len(nodes), Partition: partition})
}

// usedHold updates the hold in which an expander started.
func (c *Core) usedHold(g Grow, got Grown) {
	if r, ok := c.reservations[g.Hold]; ok && got.Opened && !got.HoldGone {
		r.Users = g.LetIn
		c.setHold(r) // and closed again
	}
	if g.Hold != "" && got.HoldGone {
		c.forgetHold(g.Hold)
	}
	if got.Stays {
		c.stay(g.Hold)
	}
}

// settleGrow is called with the outcome of an expander.
func (c *Core) settleGrow(j *job, p *Pending, o Outcome) {
	got, _ := o.Result.(Grown)
	g, to := commandOf[Grow](p), p.Args.Nodes
	if got.Limit != "" && g.Step != lentStep {
		c.keepBack(j, got.Limit, to)
	}
	c.usedHold(g, got)
	c.suspectNodes(j, g.Nodes, o.Err)
	if errors.Is(o.Err, slurmctl.ErrNodeConfig) && c.shun(j, g.Nodes, "they have not what the job asks for") && c.snapshot != nil {
		c.refit(c.snapshot, j, c.now.Unix(), "Slurm does not give it the nodes that were planned")
	}
	if got.NotYet != "" {
		j.reason = saying(whyExpanderQueued, got.NotYet)
	}
	if got.Parked && o.Err == nil && got.Limit == "" {
		c.parksIn[parksKey{j.UID, p.Args.Partition, j.QOS}] = true
	}
	if got.Never != nil {
		c.turn(j, got.Never)
	}
	j.expanders = got.Expanders
	if g.Step != lentStep {
		c.mayGiveUp(j, to, o.Err)
	}
	if len(got.After) > 0 {
		c.setHeld(j, got.After)
	}
	if g.Step == lentStep {
		c.mayNotLend(j, got, o.Err)
	}
}

// covered reports whether some of the nodes are reserved before the job's time limit for anything except that
// step, including an offer to the job itself. Then Slurm gives them only to jobs inside one of our holds.
func (c *Core) covered(j *job, step int, nodes []string) bool {
	until := c.now.Add(time.Duration(j.reach(c.now.Unix()))*time.Second + time.Minute)
	for _, r := range c.reservations {
		if own, ours := parseHold(r); (!ours || own.job != j.id() || own.step != step) && r.End.After(c.now) && r.Start.Before(until) && len(common(nodes, r.Nodes)) > 0 {
			return true
		}
	}
	for _, r := range c.stuckHolds { // until the hold is given up
		if len(common(nodes, r.Nodes)) > 0 {
			return true
		}
	}
	return false
}

// partitionOf returns the partition in which the base job runs.
func partitionOf(j *job) string {
	if j.record.Partition != "" {
		return j.record.Partition
	}
	return j.Partition
}

// Unready returns in words why an expander that has nodes cannot be used yet, or "". If the sidecar merged an
// expander whose nodes do not come up, Slurm would end the base job. An expander with a step manager rejects
// steps until its prologs have ended.
func Unready(k *slurmctl.Job, stepMgr bool) string {
	switch {
	case k.State == slurmctl.Configuring:
		return "waits for nodes that Slurm is switching on"
	case k.State == slurmctl.Suspended:
		return "waits for nodes on which Slurm has suspended it"
	case stepMgr && k.InProlog():
		return "waits for the prolog on the nodes that it gets"
	}
	return ""
}

// notReady returns in words why the job's present expanders bring nothing yet, or "".
func (c *Core) notReady(s *snapshot, j *job) string {
	for _, id := range j.expanders {
		if k := s.byID[id]; k != nil {
			if why := Unready(k, j.mode.waitsForPrologs); why != "" {
				return why
			}
		} else if j.touched.After(s.taken) {
			return "waits for the job that brings its nodes"
		}
	}
	return ""
}

// shrink gives nodes back, those of companions first, newest first.
func (c *Core) shrink(j *job, surplus []string) {
	j.reason = reason{kind: whyShrinks, nodes: len(surplus)}
	do := Shrink{Held: slices.Clone(j.held), Surplus: surplus, NeedsDBD: slurmctl.ResizeNeedsSlurmdbd(c.slurmConfig)}
	c.do(j, "shrink", slurmctl.CompressNodes(surplus), KindShrink, do, Args{})
}

// settleShrink is called when a job gave nodes back, or when that failed.
func (c *Core) settleShrink(j *job, p *Pending, o Outcome) {
	if held, ok := o.Result.([]Part); ok {
		c.setHeld(j, held)
	}
	surplus := commandOf[Shrink](p).Surplus
	j.gave, j.gaveAt = surplus, c.now
	if o.Err == nil && c.snapshot != nil {
		for _, name := range surplus { // others may have them at once
			delete(c.snapshot.inUse, name)
		}
	}
}

// repair restores what the current step of a running job should have, after a crash of slurmctld undid a merge
// or a shrink, or after a companion was lost.
func (c *Core) repair(s *snapshot, j *job) {
	if !j.mode.resizes || len(j.plan) < j.Step || j.touched.After(s.taken) {
		return
	}
	if j.stillKept(c.now) {
		j.reason = saying(whyKeptBack, j.kept.text)
		return
	}
	if j.kept != nil {
		c.tryAgain(s, j, c.now)
	}
	want, have := j.plan[j.Step-1].nodes, j.own()
	if len(have) >= j.Profile[j.Step-1].Nodes {
		if over := c.canGive(j, c.overMost(j)); len(over) > 0 {
			c.event(j, "repair", map[string]any{"surplus": slurmctl.CompressNodes(over)})
			c.shrink(j, over)
		}
		return
	}
	if missing := Without(want, have); len(missing) > 0 {
		c.grow(s, j, j.Step, missing)
	}
}

// readiedFor is how long Slurm may take to start a readied link after the end of the link before, until the
// sidecar releases it again.
const readiedFor = 5 * time.Second

// startLink starts the Slurm job of a chain's next step in its hold.
func (c *Core) startLink(s *snapshot, j *job, next *plannedStep, now time.Time) {
	r := j.in(s, j.chain[j.Step])
	hold, ok := c.holdFor(j, j.Step+1)
	if r == nil || r.State != slurmctl.Pending || !ok || next.start > now.Unix() {
		return
	}
	if j.letGo == r.ID && keptStart(s, r, j.touched) {
		c.park(j, r, row.Waiting)
		return
	}
	if hold.Start.After(now) || j.letGo == r.ID && now.Sub(j.touched) < 10*time.Second {
		return
	}
	if j.readied == r.ID && !hold.Start.After(j.StepEnded) && now.Sub(j.StepEnded) < readiedFor {
		return
	}
	if !c.reshape(j, r, j.Step+1) {
		return
	}
	c.letGo(j, r.ID, hold.Name, row.Waiting)
}
