package follow

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Follow finds out what became of the known jobs.
func Follow(c *state.Core, s *state.Snapshot) {
	for j := range plan.Each(c, slices.Clone(c.Active)) {
		if replaced(c, s, j) {
			continue
		}
		failedLater(c, s, j)
		if acts(c, j) && !j.Touched.After(s.Taken) {
			j.TouchedAt(s.Taken.Add(1)) // do not believe this poll after the action has ended either
		}
		if j.Touched.After(s.Taken) {
			continue // its last action is newer than the poll
		}
		if letGoWithout(c, j, s.ByID[adopt.PresentJob(c, j)]) {
			LetGo(c, j)
			continue
		}
		if j.Mode.StepsAreJobs {
			followChain(c, s, j)
			continue
		}
		r := s.ByID[j.BaseID()]
		if r != nil {
			j.Readmit(c, s.Taken)
			adopt.See(j, r)
			j.RankAsInSlurm()
			checkWritten(c, j)
		}
		switch {
		case r == nil || r.Ended():
			askEnd(c, j, state.KindEnd, j.BaseID())
		case r.State == slurmctl.Completing:
			j.Ending = true
			observeHeld(c, s, j)
		case r.State == slurmctl.Pending:
			j.QueuedAt, j.Ending = s.Taken, false // also if it was requeued before it was seen running
			switch {
			case j.Runs():
				requeued(c, j)
			case j.Configuring:
				notConfigured(c, j, r)
			}
		case r.State == slurmctl.Configuring:
			configures(c, s, j)
		default:
			followRunning(c, s, j, r)
		}
	}
}

// followRunning follows a job that runs in Slurm.
func followRunning(c *state.Core, s *state.Snapshot, j *state.Job, r *slurmctl.Job) {
	if j.Ending = false; beganAgain(c, j, r) {
		requeued(c, j)
		adopt.Again(c, j)
	}
	changed := observeHeld(c, s, j)
	switch {
	case !j.Runs():
		Began(c, s, j, r)
	case j.Doubtful && changed:
		if step := adopt.RecoverStep(c, s, j); step > j.Step {
			j.InStep(j.StepStarted)
			correct(c, j, step, "another sidecar has led it on since the database was copied")
		}
	}
	j.Believed()
	followSuspension(c, s, j)
}

// beganAgain reports whether a running job was requeued, and started, without being seen in the queue: while no sidecar
// looked, or before this one took over with a copy of the database.
func beganAgain(c *state.Core, j *state.Job, r *slurmctl.Job) bool {
	return j.Runs() && j.Begun != 0 && c.WallSecond(r.StartTime.Unix()) > j.Begun+int64(state.ClockSlack/time.Second)
}

// acts reports whether an action on a job is under way that may change what Slurm shows of the job. A change of a hold
// does not. Where slurmctld is slow, a job has one under way in most polls.
func acts(c *state.Core, j *state.Job) bool {
	if !j.Busy {
		return false
	}
	for _, p := range c.Work.Pending {
		if p.Job == j.ID {
			return p.Kind != state.KindCreateHold && p.Kind != state.KindAdjustHold && p.Kind != state.KindLengthen
		}
	}
	return true
}

// observeHeld takes over from Slurm which nodes the job has. Slurm is right, whatever the
// sidecar believes. So the sidecar notices a merge or a shrink that slurmctld lost in a crash,
// or completed while the sidecar was down. It reports whether they differ.
func observeHeld(c *state.Core, s *state.Snapshot, j *state.Job) (changed bool) {
	held := []msg.Part{{ID: j.BaseID(), Step: 1, Nodes: j.Record.NodeList}}
	j.Expanders = j.Expanders[:0]
	for i := range s.Jobs {
		r := &s.Jobs[i]
		own, ours := state.ParseHoldName(r.Name)
		if !ours || own.Job != j.BaseID() || !slurm.IsExpander(c, r) || !adopt.MayBring(c, r, j) || r.State == slurmctl.Completing || r.Ended() {
			continue
		}
		c.ByID[r.ID] = j
		if usable := r.State == slurmctl.Running && msg.Unready(r, j.Mode.WaitsForPrologs) == "" || r.State == slurmctl.Suspended; usable && j.Mode.GrowthsStayJobs {
			held = append(held, msg.Part{ID: r.ID, Step: own.Step, Nodes: r.NodeList})
		} else {
			j.Expanders = append(j.Expanders, r.ID)
		}
	}
	slices.SortFunc(held[1:], func(a, b msg.Part) int { return int(a.ID) - int(b.ID) })
	if slices.EqualFunc(j.Held, held, func(a, b msg.Part) bool { return a.ID == b.ID && msg.SameSet(a.Nodes, b.Nodes) }) {
		return false
	}
	if len(j.Held) > 0 {
		nodesChanged(c, s, j, held)
	}
	SetHeld(c, j, held)
	return true
}

// SetHeld records the parts that the job has from now on.
func SetHeld(c *state.Core, j *state.Job, held []msg.Part) {
	j.Held = held
	for _, p := range held {
		c.ByID[p.ID] = j
	}
	c.SaveParts(j)
	if j.Step > 0 {
		recordAllocation(c, j, c.Now)
	}
}

func heldText(held []msg.Part) string {
	return slurmctl.CompressNodes((&state.Sight{Held: held}).Nodes())
}

// recordAllocation records the nodes and the step of a job from a time on.
func recordAllocation(c *state.Core, j *state.Job, now time.Time) {
	nodes := j.Nodes()
	c.SaveAllocation(j, now, len(nodes), slurmctl.CompressNodes(nodes))
	if last := len(j.Past) - 1; last >= 0 && j.Past[last].End.IsZero() {
		j.Past[last].End = msg.Later(now, j.Past[last].Start)
	}
	if len(nodes) > 0 {
		j.Past = append(j.Past, row.Span{Step: j.Step, Start: now, Nodes: len(nodes), NodeList: slurmctl.CompressNodes(nodes)})
	}
}

// guessed reports whether the step of a running job is a guess.
func guessed(j *state.Job) bool { return j.Guess > 0 && j.Mode.ScriptSpansSteps }

// Began handles that Slurm has started the job.
func Began(c *state.Core, s *state.Snapshot, j *state.Job, r *slurmctl.Job) {
	plan.FixChoice(c, j, r)
	planned := int64(0)
	if len(j.Plan) > 0 {
		planned = j.Plan[0].Start
	}
	start := startedAt(r, j.QueuedAt, c.Now)
	j.Start(r, start, c.WallSecond(r.StartTime.Unix()))
	if inStep := j.Doubtful && len(j.Nodes()) == j.Profile[0].Nodes; guessed(j) && !inStep {
		adopt.Recovered(c, j, adopt.RecoverStep(c, s, j))
		if j.Doubtful {
			c.StorePlan(j, nil) // of the time before it began
		}
	}
	c.Save(j)
	recordAllocation(c, j, start)
	c.Event(j, "started", map[string]any{"planned": c.WallSecond(planned), "nodes": slurmctl.CompressNodes(j.Nodes()), "step": j.Step})
	c.LogJob(j).WithField("nodes", slurmctl.CompressNodes(j.Nodes())).Info("started")
	if j.BestEffort() {
		refit.PlanBestEffort(c, j)
		return
	}
	planBegun(c, s, j, planned, start)
}

// planBegun gives a job that has started the plan that follows from its start.
func planBegun(c *state.Core, s *state.Snapshot, j *state.Job, planned int64, start time.Time) {
	if j.Guess > 0 && len(j.Plan) == 0 {
		return // FollowPlans plans it once the steps of all other jobs found running are known
	}
	if len(j.Plan) == 0 || planned != start.Unix() || !msg.SameSet(j.Plan[0].Nodes, j.Nodes()) {
		const why = "it started at another time than planned"
		if unfit := refit.Refit(c, s, j, s.Taken.Unix(), why); unfit != "" && len(j.Plan) > 0 {
			was := int64(0)
			if j.Step < len(j.Plan) {
				was = j.Plan[j.Step].Start
			}
			c.StorePlan(j, nil) // no part of the plan applies; FollowPlans replans it when possible
			if !j.Last() {
				c.Event(j, "delayed", map[string]any{"why": why + ", and cannot be planned again: " + unfit, "step": j.Step + 1, "was": c.WallSecond(was)})
			}
		}
	}
	refit.Suit(c, s, j, s.Taken.Unix())
}

// requeued handles that a job that ran is back in Slurm's queue. The job starts over.
func requeued(c *state.Core, j *state.Job) {
	c.LogJob(j).Warn("the job was requeued: it starts over")
	beginsAgain(c, j, 1)
	if refit.OfferAt(j) != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the job was requeued")
	}
	GrowthFailed(c, j)
	j.Requeue(c.Now.Add(slurmctl.RegrowAfter))
	if m := j.Moldable; m != nil {
		plan.SetChoice(c, j, m.Choice, false)
	}
	c.Save(j)
	c.SaveAllocation(j, c.Now, 0, "")
	c.SaveParts(j)
	c.StorePlan(j, nil)
	refit.Notify(c, j)
}

// askEnd asks Slurm how jobs of j ended.
func askEnd(c *state.Core, j *state.Job, kind state.Kind, ids ...slurmctl.JobID) {
	if !j.Busy && c.Work.Room() { // otherwise at the next poll
		c.Ask(j, "", kind, c.Gently(msg.Ask{ids}), state.Args{})
	}
}

// endsOf returns how Slurm jobs of j ended, and whether that is known.
func endsOf(c *state.Core, j *state.Job, o msg.Outcome) (map[slurmctl.JobID]slurmctl.Job, bool) {
	if errors.Is(o.Err, msg.ErrBackfilling) {
		return nil, false // ask again at the next poll
	}
	if o.Err != nil {
		c.LogJob(j).WithError(o.Err).Warn("cannot tell yet how the job ended")
		return nil, false
	}
	seen := map[slurmctl.JobID]slurmctl.Job{}
	jobs, _ := o.Result.([]slurmctl.Job)
	for _, r := range jobs {
		if !anothers(j, &r) {
			seen[r.ID] = r
		}
	}
	return seen, true
}

// SettleEnd ends a job that Slurm no longer knows or shows as ended. One poll alone is not enough evidence.
func SettleEnd(c *state.Core, j *state.Job, _ *state.Pending, o msg.Outcome) {
	if seen, ok := endsOf(c, j, o); ok {
		if last, known := seen[j.BaseID()]; !known || last.Ended() {
			end(c, j, last)
		}
	}
}

// end records the end of a job. The value last is Slurm's final record of the job, if any. The sidecar
// removes what the job leaves in Slurm (holds, expanders) at once.
func end(c *state.Core, j *state.Job, last slurmctl.Job) { endWith(c, j, last, cancelCompanions) }

// endWith does what end does, with something else for the companions.
func endWith(c *state.Core, j *state.Job, last slurmctl.Job, companions func(*state.Core, *state.Job)) {
	st, at := string(last.State), c.Now
	if e := last.EndTime; last.Ended() && !e.IsZero() && e.Before(at) {
		at = e
	}
	if refit.OfferAt(j) != nil {
		refit.CloseOffer(c, j, refit.OfferWithdrawn, "the job has ended")
	}
	GrowthFailed(c, j)
	j.End(at, st)
	c.Save(j)
	c.SaveAllocation(j, at, 0, "")
	c.Event(j, "ended", map[string]any{"state": st, "step": j.Step, "steps": len(j.Profile)})
	if n := len(j.Past); n > 0 && j.Past[n-1].End.IsZero() {
		j.Past[n-1].End = msg.Later(at, j.Past[n-1].Start)
	}
	c.LogJob(j).WithField("state", st).Info("ended")
	refit.Notify(c, j)
	companions(c, j)
	c.Active = slices.DeleteFunc(c.Active, func(other *state.Job) bool { return other == j })
	for id, owner := range c.ByID {
		if owner == j {
			delete(c.ByID, id)
		}
	}
	c.Ended = append(c.Ended, j)
	if len(c.Ended) > msg.MostEnded {
		c.Ended = c.Ended[1:]
	}
}

// followChain does what follow does for a chain, whose steps begin and end with Slurm jobs.
func followChain(c *state.Core, s *state.Snapshot, j *state.Job) {
	current := adopt.CurrentLink(c, j)
	r := s.ByID[j.Chain[current]]
	if r != nil {
		adopt.See(j, r)
		j.RankAsInSlurm()
	}
	switch {
	case r == nil || r.Ended():
		before := j.Chain[max(j.Step, 1)-1]
		askEnd(c, j, state.KindLinkEnd, j.Chain[current], before)
	case r.State == slurmctl.Pending:
		j.QueuedAt = s.Taken
		if j.State == row.Running {
			linkRequeued(c, s, j)
		}
	case r.State == slurmctl.Running || r.State == slurmctl.Suspended:
		LinkRuns(c, s, j, r)
		followSuspension(c, s, j)
	case r.State == slurmctl.Configuring:
		j.WaitsFor(state.Because(state.WhyConfiguring))
	}
}

// SettleLinkEnd takes over how the current Slurm job of a chain ended.
func SettleLinkEnd(c *state.Core, j *state.Job, p *state.Pending, o msg.Outcome) {
	ids := state.CommandOf[msg.Ask](p).Jobs // the current job, and the job of the last step that began
	if seen, ok := endsOf(c, j, o); ok && len(ids) == 2 {
		if current := slices.Index(j.Chain, ids[0]); current >= 0 {
			linkEnded(c, j, current, seen[ids[0]], seen[ids[1]])
		}
	}
}

// linkEnded handles the end of a chain's current job. It gets Slurm's records of that job, and of
// the job whose step began last.
func linkEnded(c *state.Core, j *state.Job, current int, done, before slurmctl.Job) {
	if done.ID != 0 && j.Step == current && !done.StartTime.IsZero() && done.BatchHost != "" {
		// the job began and ended between two polls
		LinkRuns(c, c.Snapshot, j, &done)
		before = done
	}
	if done.State != slurmctl.Completed || j.Last() || j.State != row.Running {
		cancelChain(c, j)
		if before.ID == 0 || before.Ended() {
			end(c, j, before)
		}
		return
	}
	j.EndStep(c.Now)
	c.Save(j)
	c.Event(j, "step ended", map[string]any{"step": j.Step})
	if r := In(j, c.Snapshot, j.Chain[j.Step]); r != nil && r.State == slurmctl.Running && len(r.NodeList) > 0 {
		adopt.See(j, r)
		LinkRuns(c, c.Snapshot, j, r) // Slurm started it when the previous job ended
		return
	}
	switch next := j.Next(); {
	case next == nil:
		refit.Refit(c, c.Snapshot, j, c.Snapshot.Taken.Unix(), "the step lasted longer than its profile says")
	case !c.ReachedSecond(c.Snapshot.Taken.Unix(), next.Start):
		refit.Refit(c, c.Snapshot, j, c.Snapshot.Taken.Unix(), "a step ended early")
	}
}

// LinkRuns handles that a chain's current job was seen running.
func LinkRuns(c *state.Core, s *state.Snapshot, j *state.Job, r *slurmctl.Job) {
	current := adopt.CurrentLink(c, j)
	if j.Step == current+1 {
		return
	}
	j.Held = []msg.Part{{ID: r.ID, Step: current + 1, Nodes: r.NodeList}}
	if j.Step == 0 {
		Began(c, s, j, r)
		return
	}
	j.CountAnew()
	BeginStep(c, j, startedAt(r, j.QueuedAt, c.Now))
}

// linkRequeued handles that a chain's job that ran is back in Slurm's queue. The job's step starts over.
func linkRequeued(c *state.Core, s *state.Snapshot, j *state.Job) {
	if j.Step == 1 {
		requeued(c, j)
		return
	}
	c.LogJob(j).Warn("the job of this step was requeued: the step starts over")
	beginsAgain(c, j, j.Step)
	j.RequeueStep(c.Now, c.Now.Add(slurmctl.RegrowAfter))
	c.Save(j)
	c.SaveAllocation(j, c.Now, 0, "")
	c.SaveParts(j)
	refit.Refit(c, s, j, s.Taken.Unix(), "the job of a step was requeued")
}

// cancelChain cancels the remaining jobs of a chain. If that fails, adopt finds them.
func cancelChain(c *state.Core, j *state.Job) {
	left := slices.Clone(j.Chain[min(max(j.Step, 1), len(j.Chain)):])
	left = slices.DeleteFunc(left, func(id slurmctl.JobID) bool { return In(j, c.Snapshot, id) == nil })
	if len(left) > 0 {
		adopt.CancelBeside(c, "the rest of the chain", left...)
	}
}

// cancelCompanions cancels the companions of an ended job that are known to run. The function
// clean finds the others.
func cancelCompanions(c *state.Core, j *state.Job) {
	var ids []slurmctl.JobID
	for _, p := range companionsOf(j) {
		if r := c.Snapshot.ByID[p.ID]; r != nil && slurm.IsExpander(c, r) && adopt.MayBring(c, r, j) && (r.State == slurmctl.Running || r.State == slurmctl.Suspended) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) > 0 {
		adopt.CompleteBeside(c, "its companions", ids...)
	}
}

// SettleCancelBeside handles the outcome of cancelling such jobs.
func SettleCancelBeside(c *state.Core, _ *state.Job, p *state.Pending, o msg.Outcome) {
	if o.Err != nil {
		c.Log.WithError(o.Err).WithField("ids", state.CommandOf[msg.Cancel](p).Jobs).Warn(p.Args.What + " could not be cancelled")
	}
}

// Clean cancels expanders whose base job has ended or does not want them.
func Clean(c *state.Core, s *state.Snapshot) {
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if !refit.Outlived(c, s, r) {
			continue
		}
		own, _ := state.ParseHoldName(r.Name)
		end := adopt.CancelBeside
		if r.State == slurmctl.Running {
			end = adopt.CompleteBeside
		}
		if end(c, "an expander", r.ID) {
			c.Log.WithField("expander", r.ID).WithField("job", own.Job).Info("cancelling an expander that outlived its job")
			c.Event(c.ByID[own.Job], "cleaned", map[string]any{"expander": r.ID, "base": own.Job})
		}
	}
}
