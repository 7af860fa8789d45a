package controller

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// ignoreUnknown is err unless it says that a reservation is gone already.
func ignoreUnknown(err error) error {
	if errors.Is(err, slurmctl.ErrUnknownReservation) {
		return nil
	}
	return err
}

// start lets a parked job go, into the hold on its first step's nodes: once all
// its growths are held too, nobody has slipped in before, and the nodes are free.
func (c *Controller) start(s *snapshot, j *job) {
	now := time.Now().Unix()
	hold, ok := c.holdFor(j, 1)
	if !ok || hold.Start.Unix() > now || !c.confirmed(s, j, now) {
		if j.reason = "its nodes are being held"; j.unheld != "" {
			j.reason = j.unheld + "; it begins once they fit"
		}
		c.awaitNodes(j.plan[0].start, false)
		if late := now - j.plan[0].start; late > 0 && late < int64(fastFor/time.Second) {
			c.pace.urgent = true // to look at the nodes was not enough
		}
		return
	}
	if !c.freeFor(s, j.plan[0].nodes, &j.record) {
		if j.reason = s.switching(j.plan[0].nodes); j.reason == "" {
			j.reason = "waits for nodes that are about to be free"
		}
		c.awaitNodes(j.plan[0].start, false)
		return
	}
	c.letGo(j, j.record.ID, hold.Name, store.Starting)
}

// letGoBare starts a pending job on the nodes of a hold, but not inside: on a site that
// lets nobody change running jobs it would stay there, and end with it.
func (c *Controller) letGoBare(ctx context.Context, id slurmctl.JobID, hold, partition string) error {
	none := ""
	err := c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{Reservation: &none})
	if err == nil {
		err = ignoreUnknown(c.slurm.DeleteReservation(ctx, hold))
	}
	if err == nil {
		err = c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{StartNow: true, Partition: partition})
	}
	return err
}

// awaitNodes has the nodes looked at, for somebody who should have some since then,
// perhaps for a job that runs.
func (c *Controller) awaitNodes(since int64, growing bool) {
	if c.countsStand() {
		c.pace.urgent = true // the jobs tell
		return
	}
	late := max(time.Since(time.Unix(since, 0)), 0)
	c.pace.growing = c.pace.growing || growing
	if c.pace.waiting < 0 || late < c.pace.waiting {
		c.pace.waiting = late
	}
}

// letGo starts a pending Slurm job of j inside a hold, now: a StartTime in the
// future would wait for one of Slurm's cycles after it.
func (c *Controller) letGo(j *job, id slurmctl.JobID, hold string, state store.State) {
	var begun *slurmctl.Job
	partition := c.partitionFor(c.snapshot, j)
	if r := c.snapshot.byID[id]; r != nil && r.Partition == partition {
		partition = ""
	}
	before, await := j.State, c.awaitStart(id)
	if !c.do(j, "start", hold, func(ctx context.Context) error {
		var err error
		if c.slurm.WantsAccount() {
			err = c.letGoBare(ctx, id, hold, partition)
		} else {
			err = c.slurm.UpdateJob(ctx, id, slurmctl.JobUpdate{StartNow: true, Reservation: &hold, Partition: partition})
		}
		if err == nil {
			begun = await(c.lookCtx)
		}
		return err
	}, func(err error) {
		if err != nil && partition != "" && !transient(err) { // the next one, then
			if j.refusedIn == nil {
				j.refusedIn = map[string]refusal{}
			}
			j.refusedIn[partition] = refusal{err.Error(), time.Now().Add(refusedFor)}
		}
		switch {
		case err != nil && state == store.Starting:
			j.State = store.Queued
			c.save(j)
		case begun != nil:
			c.startSeen(j, begun)
		}
	}) {
		return
	}
	j.State, j.reason, j.letGo = state, "let go, about to run", id
	if state != before {
		c.save(j)
	}
}

// startSoon is how long a job that was let go is looked at alone, until it runs.
const startSoon = 3 * time.Second

// awaitStart looks at one job until it runs, less and less often; nil if it does not
// yet. Slurm mostly takes 0.3 to 2 s.
func (c *Controller) awaitStart(id slurmctl.JobID) func(context.Context) *slurmctl.Job {
	var seen []slurmctl.Job
	look := c.gently(func(ctx context.Context) (err error) {
		seen, err = c.slurm.Glance(ctx, id)
		return err
	})
	return func(ctx context.Context) *slurmctl.Job {
		for wait, end := fast, time.Now().Add(startSoon); time.Now().Before(end); wait += wait / 2 {
			pause(ctx, wait)
			if ctx.Err() != nil {
				return nil
			}
			if err := look(ctx); err == nil && len(seen) == 1 && seen[0].State == slurmctl.Running && len(seen[0].NodeList) > 0 {
				return &seen[0]
			}
		}
		return nil
	}
}

// startSeen is called when a job that was let go was seen running: what a look at all
// jobs would find out later.
func (c *Controller) startSeen(j *job, r *slurmctl.Job) {
	r.ReqNodes = mayHave(r)
	j.see(r)
	j.priority = r.Priority
	if j.isChain() {
		c.linkRuns(c.snapshot, j, r)
	} else if !j.runs() {
		c.setHeld(j, []part{{id: j.id(), step: 1, nodes: r.NodeList}})
		c.began(c.snapshot, j, r)
	}
}

const (
	// startWait is how long Slurm may take to start a job that was let go.
	startWait = time.Minute
	// parked is how far in the future the start of a job without a plan is.
	parked = 10 * 365 * 24 * time.Hour
)

// configures is called while Slurm has given a job nodes that are not up yet: it has not
// begun, and its clock does not run.
func (c *Controller) configures(s *snapshot, j *job) {
	if j.runs() { // it was requeued between two looks
		c.requeued(j)
	}
	c.observeHeld(s, j)
	j.reason = "Slurm is switching its nodes on"
	if j.configuring && j.State == store.Starting {
		return
	}
	j.configuring, j.State = true, store.Starting
	c.save(j)
}

// notConfigured is called when a job is queued again since some of its nodes did not come
// up. It is planned anew for when Slurm lets it begin, after a requeue some two minutes.
func (c *Controller) notConfigured(j *job, r *slurmctl.Job) {
	why := "its nodes did not come up: Slurm has put it back into the queue"
	j.configuring, j.State, j.held = false, store.Queued, nil
	if until := r.StartTime; until.After(time.Now()) && time.Until(until) < mostAgain {
		j.kept = &keptBack{limit: r.Reason, text: why, again: until}
	}
	c.together(func() {
		c.save(j)
		c.saveParts(j)
		c.event(j, "nodes did not come up", map[string]any{"reason": r.Reason})
	})
	c.logJob(j).Warn(why)
}
