package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/drivemode"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// restore loads from the database the jobs that had not ended, and the latest jobs that had
// ended.
func (c *Core) restore(books Books) {
	c.work.last, c.lastRow = books.LastIntent, books.LastRow
	for _, a := range books.Aside {
		c.aside[a.Job] = a
	}
	for _, k := range books.Known {
		c.known[slurmctl.JobID(k.SlurmID)] = k
	}
	for _, b := range books.Active {
		j := c.restored(b)
		if c.setAside(j.id(), j.Submitted) != "" {
			continue // adopt reports it if Slurm still has the job
		}
		j.recount, j.settled = true, j.id() != books.Doubt
		j.needsReplan = j.lapsed()
		if j.State == row.Starting {
			// We do not know whether Slurm got the start command; repeating it is harmless.
			j.State = row.Queued
			c.save(j)
		}
		for _, p := range b.Parts {
			if j.mode.stepsAreJobs {
				j.chain = append(j.chain, slurmctl.JobID(p.SlurmID))
			} else {
				j.held = append(j.held, Part{ID: slurmctl.JobID(p.SlurmID), Step: p.Step, Nodes: expanded(p.NodeList)})
			}
		}
		j.bindTo(b.Bound)
		c.notInFuture(j, c.now)
		if k := j.Step; k > 1 && k <= len(j.plan) { // nodes given back when the step began; slurmd and the database both use whole seconds
			j.gave, j.gaveAt = Without(j.plan[k-2].nodes, j.plan[k-1].nodes), j.StepStarted
		}
		c.add(j)
	}
	for _, b := range books.Ended {
		c.ended = append(c.ended, c.restored(b))
	}
	// The next observation shows how far each intent came. Every decision is based on that.
	for _, i := range books.Intents {
		c.log.WithField("intent", i.ID).WithField("action", i.Action).Info("a change was under way when the sidecar stopped: " + i.Detail)
		c.emit(Settle{Intent: i.ID, At: c.now, Err: "the sidecar stopped in the middle"})
	}
	c.event(nil, "sidecar started", map[string]any{"version": c.site.Version, "jobs": len(books.Active)})
}

// restored returns a job of the database with its plan and its past steps.
func (c *Core) restored(b BookedJob) *job {
	j := &job{Job: &b.Job, past: b.Past, choiceLogged: true}
	for _, p := range b.Plan {
		j.plan = append(j.plan, plannedStep{start: p.Start.Unix(), end: p.End.Unix(), nodes: expanded(p.NodeList)})
	}
	c.setMode(j)
	return j
}

// expanded lists the nodes of a node list that the sidecar itself wrote.
func expanded(list string) []string {
	nodes, err := slurmctl.ExpandNodes(list)
	if err != nil {
		return nil // the shell has checked the list before
	}
	return nodes
}

// add puts a job on the list of active jobs, and removes it from the list of ended jobs.
func (c *Core) add(j *job) {
	c.ended = slices.DeleteFunc(c.ended, func(other *job) bool { return other.ID == j.ID })
	c.setMode(j)
	c.active = append(c.active, j)
	c.byID[j.id()] = j
	for _, id := range j.chain {
		c.byID[id] = j
	}
	for _, p := range j.held {
		c.byID[p.ID] = j
	}
}

// isComing reports whether a job that asks to evolve is neither adopted nor refused yet,
// because its request or its limits are still unread. After the database was lost, a running
// job waits to be adopted again. If it calls next meanwhile, it must not get the error that
// there is no such job.
func (c *Core) isComing(id slurmctl.JobID) bool {
	_, seen := c.coming[id]
	return seen && c.byID[id] == nil && c.refused[id].ID == 0
}

// adopt takes in the jobs that have the marker of evosbatch in their comments.
func (c *Core) adopt(s *snapshot) {
	clear(c.coming)
	for i := range s.jobs {
		r := &s.jobs[i]
		if own, ours := parseHoldName(r.Name); ours && c.byID[own.job] != nil && c.mayBring(r, c.byID[own.job]) {
			c.byID[own.job].attempt = max(c.byID[own.job].attempt, own.attempt)
		}
		if c.isStranger(r) && c.driven(r.Partition) && !c.refuseAside(r) {
			c.adoptIfAsked(s, r)
		}
	}
	c.handling.Done()
	for _, r := range s.reservations {
		if own, ours := parseHold(r); ours && c.byID[own.job] != nil {
			c.byID[own.job].attempt = max(c.byID[own.job].attempt, own.attempt)
		}
	}
	c.forgetRead(s)
}

// isStranger reports whether a Slurm job is neither adopted nor refused, and could be adopted.
func (c *Core) isStranger(r *slurmctl.Job) bool {
	switch r.State {
	case slurmctl.Pending, slurmctl.Configuring, slurmctl.Running, slurmctl.Suspended:
		return c.owner(r.ID) == nil && c.refused[r.ID].ID == 0 && r.ArrayTasks <= 1
	}
	return false
}

// adoptIfAsked adopts a Slurm job that asks for it once its whole request is known, or refuses it.
func (c *Core) adoptIfAsked(s *snapshot, r *slurmctl.Job) {
	c.handling.Note(r.ID, r.SubmitTime, First)
	sp, asked, err := c.request(s, r)
	if err != nil {
		c.refuse(r, err)
		return
	}
	if !asked {
		return
	}
	if err := oneJob(r); err != nil {
		c.refuse(r, err)
		return
	}
	c.coming[r.ID] = r.UID
	sp, chain, whole := c.wholeChain(s, r, sp)
	if !whole {
		return
	}
	grows := sp.Whole()
	if chain != nil {
		grows = nil // every step is a job with its own script
	}
	a, known := c.readAsked(r, grows)
	if !known {
		return
	}
	sp, why, known := c.mayEver(r, sp, chain != nil, a.understood())
	if !known {
		return
	}
	if why == nil {
		why = c.adoptJob(r, sp, chain, a)
	}
	if why != nil {
		c.refuse(r, why)
	}
}

// oneJob returns why a Slurm job that is a part of something larger cannot evolve, or nil. evosbatch
// rejects such jobs, but a user can write a marker by hand.
func oneJob(r *slurmctl.Job) error {
	switch {
	case r.Heterogenous:
		return errors.New("heterogeneous jobs cannot be planned yet: submit each component with evosbatch")
	case strings.Contains(r.Display, "_"):
		return errors.New("job arrays cannot be planned yet: submit each task with evosbatch")
	}
	return nil
}

// wholeChain returns the Slurm jobs of a chain, and its request. The list is nil if the job is no chain. It returns false while
// evosbatch is still submitting the rest of the chain, and for a link that is adopted with the chain's first job.
func (c *Core) wholeChain(s *snapshot, r *slurmctl.Job, sp request.Request) (request.Request, []slurmctl.JobID, bool) {
	if sp.Chain == nil {
		return sp, nil, true
	}
	if sp.Chain.First == 0 {
		chain := c.chainOf(s, r, len(sp.Profile))
		return sp, chain, chain != nil
	}
	return c.restOfChain(s, r, sp)
}

// forgetRead deletes what was read about Slurm jobs that are gone or adopted.
func (c *Core) forgetRead(s *snapshot) {
	for id := range c.refused {
		if s.byID[id] == nil {
			delete(c.refused, id)
		}
	}
	for id, read := range c.scripts {
		if gone := s.byID[id] == nil; gone && read.tries > 0 || (gone || c.owner(id) != nil) && read.known {
			delete(c.scripts, id)
		}
	}
}

// refuse does not adopt a job with a marker: the job stays parked, or runs as a stock job. The
// log gives the reason.
func (c *Core) refuse(r *slurmctl.Job, err error) {
	left := "it stays parked"
	if running(r) {
		left = "it runs on as a stock job"
	}
	c.refused[r.ID] = refused{Job: stranger(r, "refused: "+err.Error()), since: c.now}
	c.log.WithField("job", r.ID).WithField("user", r.User).WithError(err).Warn("cannot adopt the job; " + left)
	c.event(nil, "refused", map[string]any{"slurm_id": r.ID, "uid": r.UID, "user": r.User, "error": err.Error()})
}

// stranger returns a job that is not adopted in the form that evosqueue shows.
func stranger(r *slurmctl.Job, reason string) api.Job {
	state := row.Queued
	if running(r) {
		state = row.Running
	}
	return api.Job{ID: uint32(r.ID), Name: r.Name, User: r.User, UID: r.UID, Account: r.Account, Partition: r.Partition, State: string(state),
		Nodes: len(r.NodeList), NodeList: slurmctl.CompressNodes(r.NodeList), Reason: reason, Priority: r.Priority, Submit: r.SubmitTime, Plan: []api.Span{}, Past: []api.Span{}}
}

func (c *Core) adoptJob(r *slurmctl.Job, sp request.Request, chain []slurmctl.JobID, a asked) error {
	if a.userErr != nil {
		return a.userErr
	}
	sp, err := c.malleable(r, sp)
	if err != nil {
		return err
	}
	whole := sp.Whole()
	if err := c.checkSteps(r, sp, whole); err != nil {
		return err
	}
	values := &row.Job{SlurmID: uint32(r.ID), Submitted: r.SubmitTime, Name: r.Name, User: r.User, UID: r.UID, GID: a.gid(),
		Account: r.Account, QOS: r.QOS, Partition: r.Partition, Profile: whole, ExpandLimit: sp.ExpandLimit, Moldable: moldableOf(sp), Malleable: malleableOf(sp),
		Drive: string(drivemode.Chain), Begin: sp.Begin, Claim: sp.MaxNodes, State: row.Queued}
	j := &job{Job: values, chain: chain, inferred: running(r), script: a.script, suspendedBefore: a.suspendedBefore}
	if sp.Updated != "" {
		values.Changes = []row.Change{{ID: sp.Updated}}
	}
	if sp.Reached != nil {
		values.Changes = []row.Change{{ID: sp.Updated, Step: sp.Reached.Step}}
		if j.inferred && !c.requeuedSince(r, sp.Reached) {
			j.reached = sp.Reached.Step
		}
	}
	j.bindTo(sp.Nodes)
	j.see(r)
	if err := j.learn(a, whole[0].Nodes); err != nil {
		return err
	}
	if err := sp.CheckClaim(); err != nil {
		return err
	}
	if err := c.claimBeyond(j); err != nil {
		return err
	}
	why := "submitted as one"
	if chain == nil {
		drive, reason, err := c.driveOf(r, sp, j.asked.StepMgr)
		if err != nil {
			return err
		}
		values.Drive, why = string(drive), reason
	}
	c.setMode(j)
	detail := map[string]any{"slurm_id": r.ID, "user": r.User, "profile": values.Profile.String(),
		"expand_limit": c.expandLimit(j), "drive": values.Drive, "drive_reason": why}
	if sp.Moldable != nil {
		detail["alternatives"] = sp.Alternatives()
	}
	if sp.Malleable != nil {
		detail["bounds"] = request.BoundsOf(values.Profile, values.Malleable.Max).String()
	}
	c.addJob(j, detail)
	c.add(j)
	c.logJob(j).WithField("profile", values.Profile.String()).WithField("drive", values.Drive).Info("adopted")
	return nil
}

// checkSteps returns an error if a job's steps are invalid, or the sidecar may not choose their nodes.
func (c *Core) checkSteps(r *slurmctl.Job, sp request.Request, whole planner.Profile) error {
	if err := whole.Validate(); err != nil {
		return err
	}
	if sp.Moldable != nil && !c.site.Root && r.User != c.site.User {
		return fmt.Errorf("a moldable job is given its nodes in its user's name, for which the sidecar must run as root, not as %s", c.site.User)
	}
	return nil
}

// driven reports whether the site allows evolving jobs in any of these partitions. The sidecar
// adopts jobs in no other partition.
func (c *Core) driven(partitions string) bool {
	return len(c.cfg.Partitions) == 0 || slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool {
		return slices.Contains(c.cfg.Partitions, p)
	})
}

// chainOf returns the Slurm jobs of a chain's steps, or nil while some are missing.
func (c *Core) chainOf(s *snapshot, first *slurmctl.Job, steps int) []slurmctl.JobID {
	ids := make([]slurmctl.JobID, steps)
	ids[0] = first.ID
	found := 1
	for i := range s.jobs {
		r := &s.jobs[i]
		sp, asked, err := c.request(s, r)
		if err != nil || !asked || sp.Chain == nil || sp.Chain.First != uint32(first.ID) || r.UID != first.UID {
			continue
		}
		if k := sp.Chain.Step; k >= 2 && k <= steps && ids[k-1] == 0 {
			ids[k-1] = r.ID
			found++
		}
	}
	if found < steps {
		return nil
	}
	return ids
}

// parts lists the Slurm jobs of the job.
func (j *job) parts() []row.Part { return j.partsBy(slurmctl.CompressNodes) }

func (j *job) partsBy(text func([]string) string) []row.Part {
	var rows []row.Part
	for i, id := range j.chain {
		rows = append(rows, row.Part{SlurmID: uint32(id), Step: i + 1})
	}
	if !j.mode.stepsAreJobs {
		for _, p := range j.held {
			rows = append(rows, row.Part{SlurmID: uint32(p.ID), Step: p.Step, NodeList: text(p.Nodes)})
		}
	}
	return rows
}
