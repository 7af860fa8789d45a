package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// follow finds out what became of the known jobs.
func (c *Core) follow(s *snapshot) {
	for j := range c.each(slices.Clone(c.active)) {
		if c.replaced(s, j) {
			continue
		}
		if j.busy && !j.touched.After(s.taken) {
			j.touched = s.taken.Add(1) // do not believe this poll after the action has ended either
		}
		if j.touched.After(s.taken) {
			continue // its last action is newer than the poll
		}
		if j.mode.stepsAreJobs {
			c.followChain(s, j)
			continue
		}
		r := s.byID[j.id()]
		if r != nil {
			j.readmit(s.taken)
			j.see(r)
			j.priority = r.Priority
			c.checkWritten(j)
		}
		switch {
		case r == nil || r.Ended():
			c.askEnd(j, KindEnd, j.id())
		case r.State == slurmctl.Completing:
			j.ending, j.reason = true, because(whyCompleting)
			c.observeHeld(s, j)
		case r.State == slurmctl.Pending:
			j.queuedAt = s.taken
			switch {
			case j.runs():
				c.requeued(j)
			case j.configuring:
				c.notConfigured(j, r)
			}
		case r.State == slurmctl.Configuring:
			c.configures(s, j)
		default:
			j.ending = false
			c.observeHeld(s, j)
			if !j.runs() {
				c.began(s, j, r)
			}
			c.followSuspension(s, j)
		}
	}
}

// observeHeld takes over from Slurm which nodes the job has. Slurm is right, whatever the
// sidecar believes. So the sidecar notices a merge or a shrink that slurmctld lost in a crash,
// or completed while the sidecar was down.
func (c *Core) observeHeld(s *snapshot, j *job) {
	held := []Part{{ID: j.id(), Step: 1, Nodes: j.record.NodeList}}
	j.expanders = j.expanders[:0]
	for i := range s.jobs {
		r := &s.jobs[i]
		own, ours := parseHoldName(r.Name)
		if !ours || own.job != j.id() || !c.isExpander(r) || !c.mayBring(r, j) || r.State == slurmctl.Completing || r.Ended() {
			continue
		}
		c.byID[r.ID] = j
		if usable := r.State == slurmctl.Running && Unready(r, j.mode.waitsForPrologs) == "" || r.State == slurmctl.Suspended; usable && j.mode.growthsStayJobs {
			held = append(held, Part{ID: r.ID, Step: own.step, Nodes: r.NodeList})
		} else {
			j.expanders = append(j.expanders, r.ID)
		}
	}
	slices.SortFunc(held[1:], func(a, b Part) int { return int(a.ID) - int(b.ID) })
	if slices.EqualFunc(j.held, held, func(a, b Part) bool { return a.ID == b.ID && sameSet(a.Nodes, b.Nodes) }) {
		return
	}
	if len(j.held) > 0 {
		c.event(j, "nodes changed", map[string]any{"from": slurmctl.CompressNodes(j.nodes()), "to": heldText(held)})
	}
	c.setHeld(j, held)
}

// setHeld records the parts that the job has from now on.
func (c *Core) setHeld(j *job, held []Part) {
	j.held = held
	for _, p := range held {
		c.byID[p.ID] = j
	}
	c.saveParts(j)
	if j.Step > 0 {
		c.recordAllocation(j, c.now)
	}
}

func heldText(held []Part) string {
	return slurmctl.CompressNodes((&job{held: held}).nodes())
}

// recordAllocation records the nodes and the step of a job from a time on.
func (c *Core) recordAllocation(j *job, now time.Time) {
	nodes := j.nodes()
	c.saveAllocation(j, now, len(nodes), slurmctl.CompressNodes(nodes))
	if last := len(j.past) - 1; last >= 0 && j.past[last].End.IsZero() {
		j.past[last].End = Later(now, j.past[last].Start)
	}
	if len(nodes) > 0 {
		j.past = append(j.past, row.Span{Step: j.Step, Start: now, Nodes: len(nodes), NodeList: slurmctl.CompressNodes(nodes)})
	}
}

// Later returns the later of two times. It ensures that no span ends before it began, even if the
// clock was set in between.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// began handles that Slurm has started the job.
func (c *Core) began(s *snapshot, j *job, r *slurmctl.Job) {
	c.fixChoice(j, r)
	planned := int64(0)
	if len(j.plan) > 0 {
		planned = j.plan[0].start
	}
	j.State, j.Step, j.BatchHost, j.configuring = row.Running, 1, r.BatchHost, false
	if j.inferred && j.script != "" && j.mode.scriptSpansSteps { // slurmctld may report another batch host by now, see pinned
		j.BatchHost = j.script
	}
	start := startedAt(r, j.queuedAt, c.now)
	j.Started, j.StepStarted, j.StepEnded, j.reason, j.warned = start, start, time.Time{}, reason{}, false
	j.kept, j.keptTimes = nil, 0
	j.Suspended, j.suspendedFrom, j.recount = j.suspendedBefore, time.Time{}, j.inferred || r.State == slurmctl.Suspended
	j.overdue, j.needsReplan, j.forgone, j.unheldTold = 0, false, "", 0
	if j.inferred && j.mode.scriptSpansSteps {
		c.recovered(j, c.recoverStep(s, j))
	}
	c.save(j)
	c.recordAllocation(j, start)
	c.event(j, "started", map[string]any{"planned": c.wallSecond(planned), "nodes": slurmctl.CompressNodes(j.nodes()), "step": j.Step})
	c.logJob(j).WithField("nodes", slurmctl.CompressNodes(j.nodes())).Info("started")
	if j.inferred && len(j.plan) == 0 {
		return // followPlans plans it once the steps of all other jobs found running are known
	}
	if len(j.plan) == 0 || planned != start.Unix() || !sameSet(j.plan[0].nodes, j.nodes()) {
		const why = "it started at another time than planned"
		if unfit := c.refit(s, j, s.taken.Unix(), why); unfit != "" && len(j.plan) > 0 {
			was := int64(0)
			if j.Step < len(j.plan) {
				was = j.plan[j.Step].start
			}
			c.storePlan(j, nil) // no part of the plan applies; followPlans replans it when possible
			if !j.last() {
				c.event(j, "delayed", map[string]any{"why": why + ", and cannot be planned again: " + unfit, "step": j.Step + 1, "was": c.wallSecond(was)})
			}
		}
	}
}

// requeued handles that a job that ran is back in Slurm's queue. The job starts over.
func (c *Core) requeued(j *job) {
	c.logJob(j).Warn("the job was requeued: it starts over")
	c.event(j, "requeued", map[string]any{"step": j.Step})
	j.accrualKnown = false
	if j.offer() != nil {
		c.closeOffer(j, offerWithdrawn, "the job was requeued")
	}
	j.State, j.Step, j.held, j.ending, j.retryAt = row.Queued, 0, nil, false, c.now.Add(slurmctl.RegrowAfter)
	j.Started, j.StepStarted, j.StepEnded = time.Time{}, time.Time{}, time.Time{}
	j.Suspended, j.suspendedFrom = 0, time.Time{}
	j.inferred, j.reached, j.script, j.suspendedBefore = false, 0, "", 0 // of the previous run
	j.seenComment = ""                                                   // its marker may only record that the earlier steps are over
	if j.Progress != nil {                                               // the measurements remain valid
		j.Progress = &malleable.Progress{Runs: j.Progress.Runs}
	}
	if m := j.Moldable; m != nil {
		c.setChoice(j, m.Choice, false)
	}
	c.save(j)
	c.saveAllocation(j, c.now, 0, "")
	c.saveParts(j)
	c.storePlan(j, nil)
	c.notify(j)
}

// askEnd asks Slurm how jobs of j ended.
func (c *Core) askEnd(j *job, kind Kind, ids ...slurmctl.JobID) {
	if c.work.room() { // otherwise at the next poll
		c.ask(j, "", kind, c.gently(Ask{ids}), Args{})
	}
}

// endsOf returns how Slurm jobs of j ended, and whether that is known.
func (c *Core) endsOf(j *job, o Outcome) (map[slurmctl.JobID]slurmctl.Job, bool) {
	if errors.Is(o.Err, ErrBackfilling) {
		return nil, false // ask again at the next poll
	}
	if o.Err != nil {
		c.logJob(j).WithError(o.Err).Warn("cannot tell yet how the job ended")
		return nil, false
	}
	seen := map[slurmctl.JobID]slurmctl.Job{}
	jobs, _ := o.Result.([]slurmctl.Job)
	for _, r := range jobs {
		if r.UID == j.UID { // see replaced
			seen[r.ID] = r
		}
	}
	return seen, true
}

// settleEnd ends a job that Slurm no longer knows or shows as ended. One poll alone is not enough evidence.
func (c *Core) settleEnd(j *job, _ *Pending, o Outcome) {
	if seen, ok := c.endsOf(j, o); ok {
		if last, known := seen[j.id()]; !known || last.Ended() {
			c.end(j, last)
		}
	}
}

// end records the end of a job. The value last is Slurm's final record of the job, if any. The sidecar
// removes what the job leaves in Slurm (holds, expanders) at once.
func (c *Core) end(j *job, last slurmctl.Job) {
	state, at := string(last.State), c.now
	if e := last.EndTime; last.Ended() && !e.IsZero() && e.Before(at) {
		at = e
	}
	if j.offer() != nil {
		c.closeOffer(j, offerWithdrawn, "the job has ended")
	}
	j.State, j.Ended, j.EndState = row.Ended, at, state
	c.save(j)
	c.saveAllocation(j, at, 0, "")
	c.event(j, "ended", map[string]any{"state": state, "step": j.Step, "steps": len(j.Profile)})
	if n := len(j.past); n > 0 && j.past[n-1].End.IsZero() {
		j.past[n-1].End = Later(at, j.past[n-1].Start)
	}
	c.logJob(j).WithField("state", state).Info("ended")
	c.notify(j)
	c.cancelCompanions(j)
	c.active = slices.DeleteFunc(c.active, func(other *job) bool { return other == j })
	for id, owner := range c.byID {
		if owner == j {
			delete(c.byID, id)
		}
	}
	c.ended = append(c.ended, j)
	if len(c.ended) > MostEnded {
		c.ended = c.ended[1:]
	}
}

// MostEnded is how many ended jobs evosqueue --states=all can show.
const MostEnded = 200

// followChain does what follow does for a chain, whose steps begin and end with Slurm jobs.
func (c *Core) followChain(s *snapshot, j *job) {
	current := c.currentLink(j)
	r := s.byID[j.chain[current]]
	if r != nil {
		j.see(r)
		j.priority = r.Priority
	}
	switch {
	case r == nil || r.Ended():
		before := j.chain[max(j.Step, 1)-1]
		c.askEnd(j, KindLinkEnd, j.chain[current], before)
	case r.State == slurmctl.Pending:
		j.queuedAt = s.taken
		if j.State == row.Running {
			c.linkRequeued(s, j)
		}
	case r.State == slurmctl.Running || r.State == slurmctl.Suspended:
		c.linkRuns(s, j, r)
		c.followSuspension(s, j)
	case r.State == slurmctl.Configuring:
		j.reason = because(whyConfiguring)
	}
}

// currentLink returns the position in the chain of the Slurm job that runs or will run next.
func (c *Core) currentLink(j *job) int {
	if j.State == row.Waiting {
		return j.Step
	}
	return max(j.Step, 1) - 1
}

// presentJob returns the Slurm job in which the job runs, or will run next.
func (c *Core) presentJob(j *job) slurmctl.JobID {
	if j.mode.stepsAreJobs {
		return j.chain[c.currentLink(j)]
	}
	return j.id()
}

// settleLinkEnd takes over how the current Slurm job of a chain ended.
func (c *Core) settleLinkEnd(j *job, p *Pending, o Outcome) {
	ids := commandOf[Ask](p).Jobs // the current job, and the job of the last step that began
	if seen, ok := c.endsOf(j, o); ok && len(ids) == 2 {
		if current := slices.Index(j.chain, ids[0]); current >= 0 {
			c.linkEnded(j, current, seen[ids[0]], seen[ids[1]])
		}
	}
}

// linkEnded handles the end of a chain's current job. It gets Slurm's records of that job, and of
// the job whose step began last.
func (c *Core) linkEnded(j *job, current int, done, before slurmctl.Job) {
	if done.ID != 0 && j.Step == current && !done.StartTime.IsZero() && done.BatchHost != "" {
		// the job began and ended between two polls
		c.linkRuns(c.snapshot, j, &done)
		before = done
	}
	if done.State != slurmctl.Completed || j.last() || j.State != row.Running {
		c.cancelChain(j)
		if before.ID == 0 || before.Ended() {
			c.end(j, before)
		}
		return
	}
	j.State, j.StepEnded = row.Waiting, c.now
	c.save(j)
	c.event(j, "step ended", map[string]any{"step": j.Step})
	j.overdue = 0
	if r := j.in(c.snapshot, j.chain[j.Step]); r != nil && r.State == slurmctl.Running && len(r.NodeList) > 0 {
		j.see(r)
		c.linkRuns(c.snapshot, j, r) // Slurm started it when the previous job ended
		return
	}
	switch next := j.next(); {
	case next == nil:
		c.refit(c.snapshot, j, c.snapshot.taken.Unix(), "the step lasted longer than its profile says")
	case next.start > c.snapshot.taken.Unix():
		c.refit(c.snapshot, j, c.snapshot.taken.Unix(), "a step ended early")
	}
}

// linkRuns handles that a chain's current job was seen running.
func (c *Core) linkRuns(s *snapshot, j *job, r *slurmctl.Job) {
	current := c.currentLink(j)
	if j.Step == current+1 {
		return
	}
	j.held = []Part{{ID: r.ID, Step: current + 1, Nodes: r.NodeList}}
	if j.Step == 0 {
		c.began(s, j, r)
		return
	}
	j.Suspended, j.suspendedFrom = 0, time.Time{} // Slurm counts separately for each of its jobs
	c.beginStep(j, startedAt(r, j.queuedAt, c.now))
}

// linkRequeued handles that a chain's job that ran is back in Slurm's queue. The job's step starts over.
func (c *Core) linkRequeued(s *snapshot, j *job) {
	if j.Step == 1 {
		c.requeued(j)
		return
	}
	c.logJob(j).Warn("the job of this step was requeued: the step starts over")
	c.event(j, "requeued", map[string]any{"step": j.Step})
	j.State, j.Step, j.held, j.StepStarted, j.StepEnded = row.Waiting, j.Step-1, nil, c.now, c.now
	j.Suspended, j.suspendedFrom = 0, time.Time{}
	j.letGo, j.readied, j.overdue, j.warned = 0, 0, 0, false
	j.retryAt = c.now.Add(slurmctl.RegrowAfter)
	c.save(j)
	c.saveAllocation(j, c.now, 0, "")
	c.saveParts(j)
	c.refit(s, j, s.taken.Unix(), "the job of a step was requeued")
}

// cancelChain cancels the remaining jobs of a chain. If that fails, adopt finds them.
func (c *Core) cancelChain(j *job) {
	left := slices.Clone(j.chain[min(max(j.Step, 1), len(j.chain)):])
	left = slices.DeleteFunc(left, func(id slurmctl.JobID) bool { return j.in(c.snapshot, id) == nil })
	if len(left) > 0 {
		c.cancelBeside("the rest of the chain", left...)
	}
}

// cancelCompanions cancels the companions of an ended job that are known to run. The function
// clean finds the others.
func (c *Core) cancelCompanions(j *job) {
	var ids []slurmctl.JobID
	for _, p := range j.companions() {
		if r := c.snapshot.byID[p.ID]; r != nil && c.isExpander(r) && c.mayBring(r, j) && (r.State == slurmctl.Running || r.State == slurmctl.Suspended) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) > 0 {
		c.cancelBeside("its companions", ids...)
	}
}

// cancelBeside cancels Slurm jobs that no longer belong to any job.
func (c *Core) cancelBeside(what string, ids ...slurmctl.JobID) bool {
	return c.ask(nil, fmt.Sprint("cancel ", ids), KindCancelBeside, Task{Command: Cancel{ids}}, Args{What: what})
}

// settleCancelBeside handles the outcome of cancelling such jobs.
func (c *Core) settleCancelBeside(_ *job, p *Pending, o Outcome) {
	if o.Err != nil {
		c.log.WithError(o.Err).WithField("ids", commandOf[Cancel](p).Jobs).Warn(p.Args.What + " could not be cancelled")
	}
}

// mayBring reports whether a Slurm job with the name of an expander of j may really be an expander. Any
// user can use such a name.
func (c *Core) mayBring(r *slurmctl.Job, j *job) bool { return r.UID == j.UID || c.isSelf(r) }

// clean cancels expanders whose base job has ended or does not want them.
func (c *Core) clean(s *snapshot) {
	for i := range s.jobs {
		r := &s.jobs[i]
		if !c.outlived(s, r) {
			continue
		}
		own, _ := parseHoldName(r.Name)
		if c.cancelBeside("an expander", r.ID) {
			c.log.WithField("expander", r.ID).WithField("job", own.job).Info("cancelling an expander that outlived its job")
			c.event(c.byID[own.job], "cleaned", map[string]any{"expander": r.ID, "base": own.job})
		}
	}
}

// outlived reports whether a Slurm job is an expander whose base job has ended or does not
// want it.
func (c *Core) outlived(s *snapshot, r *slurmctl.Job) bool {
	if r.State == slurmctl.Completing || r.Ended() || !c.isExpander(r) {
		return false
	}
	own, _ := parseHoldName(r.Name)
	if c.isComing(own.job) {
		return false // its job will soon be adopted again
	}
	if base := s.byID[own.job]; base != nil && !base.Ended() && c.setAside(base.ID, base.SubmitTime) != "" {
		return false // the job keeps its nodes
	}
	if j := c.byID[own.job]; j != nil && c.awaits(s, j, r, own) {
		return false
	}
	return c.isSelf(r) || c.sameUser(s, r, own.job)
}

// awaits reports whether a known base job may still use an expander.
func (c *Core) awaits(s *snapshot, j *job, r *slurmctl.Job, own ownName) bool {
	forgotten := r.State == slurmctl.Pending && s.taken.Sub(r.SubmitTime) > startWait // never released, because the sidecar was killed
	return j.busy || j.touched.After(s.taken) || !j.ending && j.runs() && !forgotten && !c.forlorn(j, r.ID, own)
}

// sameUser reports whether a job of a user may be an expander of a base job. If not, it is another user's
// job that only looks like an expander.
func (c *Core) sameUser(s *snapshot, r *slurmctl.Job, id slurmctl.JobID) bool {
	if base := s.byID[id]; base != nil && base.UID != r.UID {
		return false
	}
	known, ever := c.known[id]
	return !ever || known.UID == r.UID // otherwise it is named after an ended job
}

// forlorn reports whether an expander was created for an offer that is over, or lost with the
// database. Such an expander would bring nodes beyond the job's plan.
func (c *Core) forlorn(j *job, id slurmctl.JobID, own ownName) bool {
	return own.step == lentStep && slices.Contains(j.expanders, id) && j.offer() == nil
}

// isSelf reports whether the sidecar itself submitted the job, in its own name.
func (c *Core) isSelf(r *slurmctl.Job) bool { return r.User == c.site.User }
