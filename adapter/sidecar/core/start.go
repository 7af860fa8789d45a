package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// start releases a parked job into the hold on its first step's nodes once all its growths are held as well,
// no other job has slipped in before it, and the nodes are free.
func (c *Core) start(s *snapshot, j *job) {
	now := c.now.Unix()
	hold, ok := c.holdFor(j, 1)
	if !ok || hold.Start.Unix() > now || !c.confirmed(s, j, now) {
		if j.reason = because(whyHeldSoon); j.unheld != nil {
			j.reason = reason{}
		}
		c.awaitNodes(j.plan[0].start, false)
		if late := now - j.plan[0].start; late > 0 && late < int64(fastFor/time.Second) {
			c.pace.urgent = true // polling the nodes was not enough
		}
		return
	}
	if !c.freeFor(s, j.plan[0].nodes, &j.record) {
		j.reason = saying(whyNodesAwaited, s.awaited(j.plan[0].nodes, "waits for nodes that are about to be free"))
		c.awaitNodes(j.plan[0].start, false)
		return
	}
	if !c.safeWith(s, j, now, j.plan[0].nodes) {
		j.reason = because(whyClaimsConflict)
		c.nextCycle = c.now
		return
	}
	if other := c.promisedSince(j); other != nil {
		j.reason = reason{kind: whyPromisedAway, job: other.SlurmID}
		c.nextCycle = c.now
		return
	}
	if !c.reshape(j, &j.record, 1) {
		return
	}
	c.letGo(j, j.record.ID, hold.Name, row.Starting)
}

// reshape gives a Slurm job of j what the chosen alternative needs, and reports whether the job has it
// already.
func (c *Core) reshape(j *job, r *slurmctl.Job, step int) bool {
	u, lacks := c.shape(j, r, step)
	if !lacks {
		return true
	}
	if !c.work.roomFor(j.UID) {
		j.reason = because(whyUserBusy)
		return false
	}
	j.reason = because(whyReshaped)
	c.do(j, "choose", j.Profile.String(), KindShape, u, Args{Seen: c.seenIn(j, r)})
	return false
}

// settleShape is called when a due job was given its nodes, or when that failed.
func (c *Core) settleShape(j *job, p *Pending, o Outcome) {
	c.shaped(j, p, o)
	c.mayLeave(j, o.Err)
}

// promisedSince returns a job that was promised nodes of a queued job after that job was planned: a running
// job whose rest was replanned in the meantime.
func (c *Core) promisedSince(j *job) *job {
	for _, other := range c.active {
		if other == j || other.kept != nil || !other.runs() && other.State != row.Starting {
			continue
		}
		for i := other.Step; i < len(other.plan); i++ {
			for _, step := range j.plan {
				if max(step.start, other.plan[i].start) < min(step.end, other.plan[i].end) && len(common(step.nodes, other.plan[i].nodes)) > 0 {
					return other
				}
			}
		}
	}
	return nil
}

// awaitNodes asks for polls of the nodes, for a job that should have had some since a time. If `growing`, that
// job is running.
func (c *Core) awaitNodes(since int64, growing bool) {
	if c.countsStand() {
		c.pace.urgent = true // the jobs show it
		return
	}
	late := max(c.now.Sub(time.Unix(since, 0)), 0)
	c.pace.growing = c.pace.growing || growing
	if c.pace.waiting < 0 || late < c.pace.waiting {
		c.pace.waiting = late
	}
}

// letGo starts a pending Slurm job of j inside a hold now: a StartTime in the future would wait for one of
// Slurm's cycles after it.
func (c *Core) letGo(j *job, id slurmctl.JobID, hold string, state row.State) {
	partition := c.partitionFor(c.snapshot, j)
	if r := c.snapshot.byID[id]; r != nil && r.Partition == partition {
		partition = ""
	}
	before := j.State
	c.do(j, "start", hold, KindStart, Start{Job: id, Hold: hold, Partition: partition, Gently: c.pace.gated}, Args{State: state})
	j.State, j.reason, j.letGo = state, because(whyReleased), id
	if state != before {
		c.save(j)
	}
}

// settleStart is called when a job was released, or when that failed.
func (c *Core) settleStart(j *job, p *Pending, o Outcome) {
	if partition := commandOf[Start](p).Partition; o.Err != nil && partition != "" && !transient(o.Err) { // try the next partition
		if j.refusedIn == nil {
			j.refusedIn = map[string]refusal{}
		}
		j.refusedIn[partition] = refusal{o.Err.Error(), c.now.Add(refusedFor)}
	}
	begun, _ := o.Result.(*slurmctl.Job)
	switch {
	case o.Err != nil && p.Args.State == row.Starting:
		j.State = row.Queued
		c.save(j)
		c.mayLeave(j, o.Err)
	case begun != nil:
		c.startSeen(j, begun)
	}
}

// startSeen is called when a released job was seen running, which a poll of all jobs would show only later.
func (c *Core) startSeen(j *job, r *slurmctl.Job) {
	j.see(r)
	j.priority = r.Priority
	if j.mode.stepsAreJobs {
		c.linkRuns(c.snapshot, j, r)
	} else if !j.runs() {
		c.setHeld(j, []Part{{ID: j.id(), Step: 1, Nodes: r.NodeList}})
		c.began(c.snapshot, j, r)
	}
}

const (
	// startWait is how long Slurm may take to start a released job.
	startWait = time.Minute
	// parked is how far in the future the start of a job without a plan is.
	parked = 10 * 365 * 24 * time.Hour
)

// configures is called while the nodes that Slurm has given a job are not up yet. The job has not begun, and
// its clock does not run.
func (c *Core) configures(s *snapshot, j *job) {
	if j.runs() { // it was requeued between two polls
		c.requeued(j)
	}
	c.observeHeld(s, j)
	j.reason = because(whyConfiguring)
	if j.configuring && j.State == row.Starting {
		return
	}
	j.configuring, j.State = true, row.Starting
	c.save(j)
}

// notConfigured is called when a job is queued again because some of its nodes did not come up. It is
// replanned for when Slurm lets it begin, about two minutes after a requeue.
func (c *Core) notConfigured(j *job, r *slurmctl.Job) {
	why := "its nodes did not come up: Slurm has put it back into the queue"
	j.configuring, j.State, j.held = false, row.Queued, nil
	if until := r.StartTime; until.After(c.now) && until.Sub(c.now) < mostAgain {
		j.kept = &keptBack{limit: r.Reason, text: why, again: until}
	}
	c.save(j)
	c.saveParts(j)
	c.event(j, "nodes did not come up", map[string]any{"reason": r.Reason})
	c.logJob(j).Warn(why)
}
