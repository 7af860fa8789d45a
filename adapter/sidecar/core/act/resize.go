package act

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/follow"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/hold"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/lend"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/pace"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// EndStep is called when a job's step has ended, by the application or by the sidecar.
func EndStep(c *state.Core, j *state.Job, now time.Time) {
	j.EndStep(now)
	j.GoesOn()
	gaveUp := j.Kept != nil && j.Kept.GivenUp
	if gaveUp {
		j.LetTry()
		j.Succeeded()
	}
	c.Save(j)
	c.Event(j, "step ended", map[string]any{"step": j.Step, "expected": c.WallSecond(j.Expected())})
	if c.Snapshot == nil {
		return
	}
	refit.Suit(c, c.Snapshot, j, now.Unix())
	if next := j.Next(); next == nil {
		refit.Refit(c, c.Snapshot, j, now.Unix(), hold.WhyAnew(j, "the step"))
	} else if gaveUp || !c.ReachedSecond(now.Unix(), next.Start) && len(next.Nodes) > len(refit.Own(j)) || len(j.Release) > 0 || len(refit.Lent(j)) > 0 && len(msg.Without(next.Nodes, j.Nodes())) > 0 {
		refit.Refit(c, c.Snapshot, j, now.Unix(), "the step ended early")
	}
}

// transition brings a job whose step has ended to the nodes of the next step. It depends only on what the job
// has and what it must have, so it can stop and continue at any point.
func transition(c *state.Core, s *state.Snapshot, j *state.Job, now time.Time) {
	next := j.Next()
	if next == nil {
		return
	}
	switch {
	case plan.StillKept(c, j, now):
		return
	case j.Kept != nil:
		follow.TryAgain(c, s, j, now)
		return
	case j.Mode.StepsAreJobs:
		startLink(c, s, j, next, now)
		return
	}
	have := j.Nodes()
	missing, surplus := msg.Without(next.Nodes, have), msg.Without(have, next.Nodes)
	switch {
	case len(missing) > 0:
		if !c.DueSecond(now.Unix(), next.Start) && len(j.Expanders) == 0 && !early(c, s, j, missing, now.Unix()) {
			cause := state.Reason{Kind: state.WhyPlannedFor, Nodes: len(missing), At: c.Wall(time.Unix(next.Start, 0))}
			if j.NeedsReplan {
				cause.Text = hold.WhyAnew(j, "the step before")
			}
			j.WaitsFor(cause)
			return
		}
		c.Moves = true // whatever keeps it
		if !plan.SafeWith(c, s, j, now.Unix(), next.Nodes) {
			j.WaitsFor(state.Because(state.WhyClaimsConflict))
			return
		}
		if extra := msg.Without(surplus, lend.KeepsLent(c, j, next, surplus)); adopt.IsMalleable(j) && len(extra) > 0 && hold.CanReturn(j, extra) {
			shrink(c, j, extra) // it never has more than it may have
			return
		}
		grow(c, s, j, j.Step+1, missing)
	default:
		if surplus = leaving(c, s, j, next, surplus); len(surplus) > 0 {
			shrink(c, j, surplus)
			return
		}
		follow.BeginStep(c, j, now)
	}
}

// leaving returns the nodes of a job's surplus that it gives back at the end of its step.
func leaving(c *state.Core, s *state.Snapshot, j *state.Job, next *msg.PlannedStep, surplus []string) []string {
	surplus = msg.Without(surplus, lend.KeepsLent(c, j, next, surplus))
	if hold.CanReturn(j, surplus) {
		return surplus
	}
	j.ReleaseByPlan() // by the plan; without a plan, the newest go first
	refit.Refit(c, s, j, c.Now.Unix(), "its nodes are given back by companions")
	if next = j.Next(); next != nil {
		surplus = msg.Without(j.Nodes(), next.Nodes)
	}
	if j.Mode.ShrinksInPart {
		return surplus
	}
	return hold.Touched(j.Held, surplus) // the plan has a part of what was lent; nodes of the base job stay
}

// early reports whether a growth may happen before its time: the nodes are free, and they are not promised to
// another job, or kept for a stock job, until then.
func early(c *state.Core, s *state.Snapshot, j *state.Job, nodes []string, now int64) bool {
	if !slurm.Free(s, nodes) || plan.KeepsAny(c, nodes, j.Next().Start) {
		return false
	}
	for _, other := range c.Active {
		if other == j || !isPromised(other) {
			continue
		}
		if slices.ContainsFunc(other.Coming(), func(p msg.PlannedStep) bool {
			return !c.ReachedSecond(now, p.End) && p.Start < j.Next().Start && len(msg.Common(nodes, p.Nodes)) > 0
		}) {
			return false
		}
	}
	for _, r := range c.Reservations {
		if own, ours := state.ParseHold(r); ours && own.Job == j.BaseID() {
			continue
		}
		if r.Start.Unix() < j.Next().Start && !c.ReachedSecond(now, r.End.Unix()) && len(msg.Common(nodes, r.Nodes)) > 0 {
			return false
		}
	}
	return true
}

// grow brings the nodes of a step to a job with an expander that starts in the hold on them.
func grow(c *state.Core, s *state.Snapshot, j *state.Job, step int, nodes []string) {
	c.Moves = true // whatever keeps it
	if suspect := slurm.IsSuspect(c, nodes); (suspect || !slurm.FreeFor(c, s, nodes, &j.Record)) && len(j.Expanders) == 0 {
		if late := j.State == row.Waiting && c.ReachedSecond(c.Now.Unix(), j.Next().Start+6); suspect || late || j.State == row.Running {
			refit.Refit(c, s, j, c.Now.Unix(), "nodes of the growth are not free in time")
		}
		if j.Next() == nil {
			return // a job that it moved comes first now, and its own plan has lapsed
		}
		j.WaitsFor(state.Saying(state.WhyNodesAwaited, hold.Awaited(s, nodes, "waits for nodes that others have not given back yet")))
		if j.State == row.Waiting {
			awaitNodes(c, j.Next().Start, true)
		}
		return
	}
	if len(j.Expanders) == 0 && !answered(c, s, j, nodes) {
		return
	}
	if why := notBrought(c, s, j, step, nodes); why.Kind != state.WhyNothing {
		j.WaitsFor(why)
		return
	}
	bring(c, j, step, nodes)
}

// notBrought returns why free nodes of a step cannot be brought to a job yet, if there is a reason.
func notBrought(c *state.Core, s *state.Snapshot, j *state.Job, step int, nodes []string) state.Reason {
	if j.Asked == nil {
		return state.Because(state.WhyRequestUnread)
	}
	if why := notReady(c, s, j); why != "" {
		return state.Saying(state.WhyExpanderUnready, why)
	}
	if why := slurm.LeftOwn(c, s, j, nodes); why != "" && len(j.Expanders) == 0 {
		return state.Saying(state.WhyExpanderUnready, why)
	}
	if len(j.Expanders) == 0 && c.Due(c.Now, j.HoldRetry) {
		if why := notHeld(c, j, step, nodes); why.Kind != state.WhyNothing {
			return why
		}
	}
	if p := s.Partitions[slurm.PartitionOf(j)]; c.Rules.Limits == nil && p.MinNodes > len(nodes) {
		if _, known := slurm.RulesSince(c, time.Time{}); !known {
			return state.Because(state.WhyPartitionUnread)
		}
	}
	if _, fits := ExpanderLimit(c, j, nodes); !fits && len(j.Expanders) == 0 {
		return state.Because(state.WhyReservedSoon)
	}
	return state.Reason{}
}

// notHeld returns why a job must wait for the hold on nodes of a step, if there is a reason.
func notHeld(c *state.Core, j *state.Job, step int, nodes []string) state.Reason {
	r, held := hold.HoldFor(c, j, step)
	switch {
	case held && len(msg.Without(nodes, r.Nodes)) > 0 && (len(msg.Common(nodes, r.Nodes)) > 0 || covered(c, j, step, nodes)):
		return state.Because(state.WhyHoldMoves) // Slurm would give it no nodes that this hold or another one blocks
	case !held && (covered(c, j, step, nodes) || postpones(c, j, step)) && j.State == row.Waiting:
		return state.Because(state.WhyHeldSoon) // the hold was requested just now
	}
	return state.Reason{}
}

// postpones reports whether a requested step may make waiting jobs later. Slurm starts its expander before these only in a
// hold.
func postpones(c *state.Core, j *state.Job, step int) bool {
	_, is := c.Delays.Grown[row.GrowDelayOf{User: true, ID: j.UID}]
	return is && len(j.Changes) > 0 && !slices.Contains(j.Deferred, step)
}

// bring submits the expander that brings a job nodes, for a step or beyond its plan.
func bring(c *state.Core, j *state.Job, step int, nodes []string) {
	if !c.Work.RoomFor(j.UID) {
		j.WaitsFor(state.Because(state.WhyUserBusy))
		return
	}
	byJob, able := byJob(c, j)
	if !able {
		noProcess(c, j, step, len(j.Nodes())+len(nodes))
		return
	}
	j.WaitsFor(state.Reason{Kind: state.WhyGrows, Nodes: len(nodes)})
	part := slurm.FirstPart(c, c.Snapshot, nodes)
	more := len(part) < len(nodes)
	nodes = part
	unmergeBefore(c, j, nodes)
	g := msg.Grow{More: more, Base: j.BaseID(), As: j.UID, Own: j.Mode.AsksJob, ByJob: byJob, Merge: j.Mode.MergesGrowths, Inside: j.Reservation,
		NeedsDBD: slurmctl.ResizeNeedsSlurmdbd(c.SlurmConfig), Name: hold.NextName(c, j, step).String(), Step: step, Nodes: nodes,
		Held: slices.Clone(j.Held), StaysInHold: j.Mode.StaysInHold, StepMgr: j.Mode.WaitsForPrologs, Expanders: slices.Clone(j.Expanders), Moved: adopt.PluginMoves(c)}
	if r, ok := hold.HoldFor(c, j, step); ok && len(msg.Without(nodes, r.Nodes)) == 0 {
		g.Hold, g.HoldBegins = r.Name, r.Start.After(c.Now)
		user := hold.Submitter(c, j)
		if byJob {
			user = j.User
		}
		if !slices.Contains(r.Users, user) {
			g.LetIn = []string{user}
		}
	}
	if g.Merge && len(msg.Common(nodes, j.Gave)) > 0 {
		g.GaveBack = j.GaveAt
	}
	partition := slurm.PartitionOf(j)
	askMore(c, j, &g, c.ParksIn[state.ParksKey{j.UID, partition, j.QOS}])
	g.StaysUntil = hold.StaysUntil(c, c.Now, g.Request.TimeLimit)
	slurm.GoThrough(c, j, &g)
	args := state.Args{Nodes: len(j.Nodes()) + len(nodes), Partition: partition}
	if byJob && len(g.Expanders) == 0 {
		submit(c, j, g, args)
		return
	}
	c.Do(j, "grow", growText(g), state.KindGrow, g, args)
}

// unmergeBefore has a job grow by companions if Slurm would requeue it once these nodes were merged, unless the job or the site asks
// for drive mode merge.
func unmergeBefore(c *state.Core, j *state.Job, nodes []string) {
	if !j.Mode.MergesGrowths || c.Config.Drive.Means().MergesGrowths {
		return
	}
	if asked, _, err := plan.Mark(c, &j.Record); err == nil && asked.Drive.Means().MergesGrowths {
		return
	}
	if why := slurm.RequeuesMerged(c, j, nodes); why != nil {
		slurm.Unmerge(c, j, why)
	}
}

// growText describes a growth in the log.
func growText(g msg.Grow) string { return g.Name + " " + slurmctl.CompressNodes(g.Nodes) }

// usedHold updates the hold in which an expander started.
func usedHold(c *state.Core, g msg.Grow, got msg.Grown) {
	if r, ok := c.Reservations[g.Hold]; ok && got.Opened && !got.HoldGone {
		r.Users = g.LetIn
		hold.SetHold(c, r) // and closed again
	}
	if g.Hold != "" && got.HoldGone {
		hold.ForgetHold(c, g.Hold)
	}
	if got.Stays {
		hold.Stay(c, g.Hold)
	}
}

// SettleGrow is called with the outcome of an expander.
func SettleGrow(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	got, _ := o.Result.(msg.Grown)
	g, to := state.CommandOf[msg.Grow](p), p.Args.Nodes
	if got.Limit != "" && g.Step != refit.LentStep {
		follow.KeepBack(c, j, got.Limit, to)
	}
	usedHold(c, g, got)
	slurm.SuspectNodes(c, j, g.Nodes, o.Err)
	if errors.Is(o.Err, slurmctl.ErrNodeConfig) && shun(c, j, g.Nodes, "they have not what the job asks for") && c.Snapshot != nil {
		refit.Refit(c, c.Snapshot, j, c.Now.Unix(), "Slurm does not give it the nodes that were planned")
	}
	if got.NotYet != "" {
		j.WaitsFor(state.Saying(state.WhyExpanderQueued, got.NotYet))
	}
	if got.Parked && o.Err == nil && got.Limit == "" {
		c.ParksIn[state.ParksKey{j.UID, p.Args.Partition, j.QOS}] = true
	}
	if got.Never != nil {
		slurm.Unmerge(c, j, got.Never)
	}
	j.ExpandedBy(got.Expanders)
	if g.Step != refit.LentStep {
		mayGiveUp(c, j, to, o.Err)
	}
	if len(got.After) > 0 {
		follow.SetHeld(c, j, got.After)
	}
	if g.Step == refit.LentStep {
		lend.MayNotLend(c, j, got, o.Err)
	}
}

// covered reports whether some of the nodes are reserved before the job's time limit for anything except that
// step, including an offer to the job itself. Then Slurm gives them only to jobs inside one of our holds.
func covered(c *state.Core, j *state.Job, step int, nodes []string) bool {
	until := c.Now.Add(time.Duration(slurm.Reach(c, j, c.Now.Unix()))*time.Second + time.Minute)
	for _, r := range c.Reservations {
		if own, ours := state.ParseHold(r); (!ours && r.Name != j.Reservation || ours && own.Job != j.BaseID() || ours && own.Step != step) && !c.Reached(c.Now, r.End) && r.Start.Before(until) && len(msg.Common(nodes, r.Nodes)) > 0 {
			return true
		}
	}
	for _, r := range c.StuckHolds { // until the hold is given up
		if len(msg.Common(nodes, r.Nodes)) > 0 {
			return true
		}
	}
	return false
}

// notReady returns in words why the job's present expanders bring nothing yet, or "".
func notReady(c *state.Core, s *state.Snapshot, j *state.Job) string {
	for _, id := range j.Expanders {
		if k := s.ByID[id]; k != nil {
			if why := msg.Unready(k, j.Mode.WaitsForPrologs); why != "" {
				return why
			}
		} else if j.Touched.After(s.Taken) {
			return "waits for the job that brings its nodes"
		}
	}
	return ""
}

// shrink gives nodes back, those of companions first, newest first.
func shrink(c *state.Core, j *state.Job, surplus []string) {
	j.WaitsFor(state.Reason{Kind: state.WhyShrinks, Nodes: len(surplus)})
	do := msg.Shrink{Held: slices.Clone(j.Held), Surplus: surplus, NeedsDBD: slurmctl.ResizeNeedsSlurmdbd(c.SlurmConfig)}
	c.Do(j, "shrink", slurmctl.CompressNodes(surplus), state.KindShrink, do, state.Args{})
}

// SettleShrink is called when a job gave nodes back, or when that failed.
func SettleShrink(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	if held, ok := o.Result.([]msg.Part); ok {
		follow.SetHeld(c, j, held)
	}
	surplus := state.CommandOf[msg.Shrink](p).Surplus
	j.GaveBack(surplus, c.Now)
	miscounted(c, j, state.CommandOf[msg.Shrink](p))
	if o.Err == nil {
		pace.GivenBack(c, surplus)
	}
}

// repair restores what the current step of a running job should have, after a crash of slurmctld undid a merge
// or a shrink, or after a companion was lost.
func repair(c *state.Core, s *state.Snapshot, j *state.Job) {
	if !j.Mode.Resizes || j.BestEffort() || len(j.Plan) < j.Step || j.Touched.After(s.Taken) {
		return
	}
	if plan.StillKept(c, j, c.Now) {
		return
	}
	if j.Kept != nil {
		follow.TryAgain(c, s, j, c.Now)
	}
	want, have := j.Plan[j.Step-1].Nodes, refit.Own(j)
	if len(have) >= j.Profile[j.Step-1].Nodes {
		if over := hold.CanGive(c, j, lend.OverMost(c, j)); len(over) > 0 {
			c.Event(j, "repair", map[string]any{"surplus": slurmctl.CompressNodes(over)})
			shrink(c, j, over)
		}
		return
	}
	if missing := msg.Without(want, have); len(missing) > 0 {
		grow(c, s, j, j.Step, missing)
	}
}

// readiedFor is how long Slurm may take to start a readied link after the end of the link before, until the
// sidecar releases it again.
const readiedFor = 5 * time.Second

// startLink starts the Slurm job of a chain's next step in its hold.
func startLink(c *state.Core, s *state.Snapshot, j *state.Job, next *msg.PlannedStep, now time.Time) {
	r := follow.In(j, s, j.Chain[j.Step])
	hold, ok := hold.HoldFor(c, j, j.Step+1)
	if r == nil || r.State != slurmctl.Pending || !ok || !c.DueSecond(now.Unix(), next.Start) {
		return
	}
	c.Moves = true // whatever keeps it
	if j.LetGo == r.ID && follow.KeptStart(c, s, r, j.Touched) {
		follow.Park(c, j, r, row.Waiting)
		return
	}
	if !c.Reached(now, hold.Start) || j.LetGo == r.ID && !c.Reached(now, j.Touched.Add(10*time.Second)) {
		return
	}
	if j.Readied == r.ID && !hold.Start.After(j.StepEnded) && !c.Reached(now, j.StepEnded.Add(readiedFor)) {
		return
	}
	if !answered(c, s, j, next.Nodes) || !reshape(c, j, r, j.Step+1) {
		return
	}
	letGo(c, j, r.ID, hold.Name, row.Waiting)
}
