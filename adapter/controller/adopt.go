package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/spec"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// load brings back what the database knows of jobs that had not ended, and of the last
// ones that had.
func (c *Controller) load() error {
	rows, err := c.store.ActiveJobs(c.ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		j, err := c.readJob(row)
		if err != nil {
			return err
		}
		j.recount = true
		j.anew, j.forfeited = j.lapsed(), j.lapsed()
		if j.State == store.Starting {
			// Whether Slurm was told to start it is not known; to say so twice does no harm.
			j.State = store.Queued
		}
		parts, err := c.store.Parts(c.ctx, j.ID)
		if err != nil {
			return err
		}
		for _, p := range parts {
			nodes, err := slurmctl.ExpandNodes(p.NodeList)
			if err != nil {
				return fmt.Errorf("parts of job %d: %w", j.SlurmID, err)
			}
			if j.isChain() {
				j.chain = append(j.chain, slurmctl.JobID(p.SlurmID))
			} else {
				j.held = append(j.held, part{id: slurmctl.JobID(p.SlurmID), step: p.Step, nodes: nodes})
			}
		}
		if j.bound, err = c.store.Bound(c.ctx, j.ID); err != nil {
			return err
		}
		c.notInFuture(j, time.Now())
		c.add(j)
	}
	ended, err := c.store.EndedJobs(c.ctx, maxEnded)
	if err != nil {
		return err
	}
	for _, row := range ended {
		j, err := c.readJob(row)
		if err != nil {
			return err
		}
		c.ended = append(c.ended, j)
	}
	intents, err := c.store.OpenIntents(c.ctx)
	if err != nil {
		return err
	}
	// Whatever they were to do, the next observation shows how far they came, and
	// every decision is made from that.
	for _, i := range intents {
		c.log.WithField("intent", i.ID).WithField("action", i.Action).Info("a change was under way when the sidecar stopped: " + i.Detail)
		c.settle(i.ID, errors.New("the sidecar stopped in the middle"))
	}
	c.event(nil, "sidecar started", map[string]any{"version": c.version, "jobs": len(rows)})
	return nil
}

// readJob is a job of the database with what was planned for it and what it held.
func (c *Controller) readJob(row *store.Job) (*job, error) {
	j := &job{Job: row}
	plan, err := c.store.Plan(c.ctx, j.ID)
	if err != nil {
		return nil, err
	}
	for _, p := range plan {
		nodes, err := slurmctl.ExpandNodes(p.NodeList)
		if err != nil {
			return nil, fmt.Errorf("plan of job %d: %w", j.SlurmID, err)
		}
		j.plan = append(j.plan, plannedStep{start: p.Start.Unix(), end: p.End.Unix(), nodes: nodes})
	}
	j.past, err = c.store.Allocations(c.ctx, j.ID)
	return j, err
}

// add puts a job on the list of those that are looked after. One that was taken for
// ended is so no more.
func (c *Controller) add(j *job) {
	c.ended = slices.DeleteFunc(c.ended, func(other *job) bool { return other.ID == j.ID })
	c.active = append(c.active, j)
	c.byID[j.id()] = j
	for _, id := range j.chain {
		c.byID[id] = j
	}
	for _, p := range j.held {
		c.byID[p.id] = j
	}
}

// isComing says whether a job that asks to evolve is neither adopted nor refused yet: its
// request, or what limits it, is still to be read. One that runs, and is adopted again
// after the database was lost, may call next meanwhile, and is not to hear that there is
// no such job.
func (c *Controller) isComing(id slurmctl.JobID) bool {
	_, seen := c.coming[id]
	return seen && c.byID[id] == nil && c.refused[id].ID == 0
}

// adopt takes in the jobs whose comment has the marker of evosbatch.
func (c *Controller) adopt(s *snapshot) {
	clear(c.coming)
	for i := range s.jobs {
		r := &s.jobs[i]
		if own, ours := parseHoldName(r.Name); ours && c.byID[own.job] != nil && c.mayBring(r, c.byID[own.job]) {
			c.byID[own.job].attempt = max(c.byID[own.job].attempt, own.attempt)
		}
		if r.State != slurmctl.Pending && r.State != slurmctl.Configuring && r.State != slurmctl.Running && r.State != slurmctl.Suspended || c.owner(r.ID) != nil || c.refused[r.ID].ID != 0 || r.ArrayTasks > 1 {
			continue
		}
		if !c.driven(r.Partition) {
			continue
		}
		sp, asked, err := c.request(s, r)
		if err != nil {
			c.refuse(r, err)
			continue
		}
		if !asked {
			continue
		}
		c.coming[r.ID] = r.UID
		if sp.Chain != nil && sp.Chain.First != 0 && (s.byID[slurmctl.JobID(sp.Chain.First)] != nil || c.byID[slurmctl.JobID(sp.Chain.First)] != nil) {
			continue // comes with the chain's first job
		}
		var chain []slurmctl.JobID
		if sp.Chain != nil {
			whole := false
			if sp.Chain.First == 0 {
				chain = c.chainOf(s, r, len(sp.Profile))
				whole = chain != nil // else evosbatch is still submitting the rest of it
			} else {
				sp, chain, whole = c.restOfChain(s, r, sp)
			}
			if !whole {
				continue
			}
		}
		a, known := c.readAsked(r.ID)
		if !known {
			continue
		}
		why, known := c.mayEver(r, sp, chain != nil)
		if !known {
			continue
		}
		if why != nil {
			c.refuse(r, why)
			continue
		}
		if err := c.adoptJob(r, sp, chain, a); err != nil {
			c.refuse(r, err)
		}
	}
	for _, r := range s.reservations {
		if own, ours := parseHold(r); ours && c.byID[own.job] != nil {
			c.byID[own.job].attempt = max(c.byID[own.job].attempt, own.attempt)
		}
	}
	for id := range c.refused {
		if s.byID[id] == nil {
			delete(c.refused, id)
		}
	}
	for id, read := range c.scripts {
		if (s.byID[id] == nil || c.owner(id) != nil) && read.known {
			delete(c.scripts, id)
		}
	}
}

// refuse leaves a job with a marker alone: it stays parked, and the log says why.
func (c *Controller) refuse(r *slurmctl.Job, err error) {
	c.refused[r.ID] = api.Job{ID: uint32(r.ID), Name: r.Name, User: r.User, UID: r.UID, Partition: r.Partition, State: string(store.Queued),
		Reason: "refused: " + err.Error(), Priority: r.Priority, Submit: r.SubmitTime, Plan: []api.Span{}, Past: []api.Span{}}
	c.log.WithField("job", r.ID).WithField("user", r.User).WithError(err).Warn("the job cannot be adopted; it stays parked")
	c.event(nil, "refused", map[string]any{"slurm_id": r.ID, "uid": r.UID, "user": r.User, "error": err.Error()})
}

func (c *Controller) adoptJob(r *slurmctl.Job, sp spec.Spec, chain []slurmctl.JobID, a asked) error {
	u, err := slurmctl.LookupUser(r.UID)
	if err != nil {
		return err
	}
	if err := sp.Profile.Validate(); err != nil {
		return err
	}
	if c.snapshot != nil && r.State == slurmctl.Pending {
		if why := c.cfg.Never(sp.Profile, chain != nil, len(c.snapshot.nodes)); why != "" {
			return errors.New(why + ": the site bounds what is held for coming steps")
		}
	}
	row := &store.Job{SlurmID: uint32(r.ID), Submitted: r.SubmitTime, Name: r.Name, User: r.User, UID: r.UID, GID: u.GID,
		Account: r.Account, QOS: r.QOS, Partition: r.Partition, Profile: sp.Profile, ExpandLimit: sp.ExpandLimit,
		Drive: string(spec.Chain), Begin: sp.Begin, State: store.Queued}
	j := &job{Job: row, chain: chain, inferred: r.State == slurmctl.Running || r.State == slurmctl.Suspended, bound: sp.Nodes}
	j.see(r)
	if err := j.learn(a, sp.Profile[0].Nodes); err != nil {
		return err
	}
	why := "submitted as one"
	if chain == nil {
		drive, reason, err := c.driveOf(r, sp)
		if err != nil {
			return err
		}
		row.Drive, why = string(drive), reason
	}
	if err := c.addJob(j, map[string]any{"slurm_id": r.ID, "user": r.User, "profile": row.Profile.String(),
		"expand_limit": c.expandLimit(j), "drive": row.Drive, "drive_reason": why}); err != nil {
		c.check(err)
		return nil // it stays parked until the database takes it
	}
	c.add(j)
	c.logJob(j).WithField("profile", row.Profile.String()).WithField("drive", row.Drive).Info("adopted")
	return nil
}

// driven says whether the site has evolving jobs in any of these partitions: it gets none
// of the others.
func (c *Controller) driven(partitions string) bool {
	return len(c.cfg.Partitions) == 0 || slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool {
		return slices.Contains(c.cfg.Partitions, p)
	})
}

// chainOf finds the Slurm jobs of a chain's steps, nil while some are missing.
func (c *Controller) chainOf(s *snapshot, first *slurmctl.Job, steps int) []slurmctl.JobID {
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

// parts lists the Slurm jobs that the job consists of.
func (j *job) parts() []store.Part {
	var rows []store.Part
	for i, id := range j.chain {
		rows = append(rows, store.Part{SlurmID: uint32(id), Step: i + 1})
	}
	if !j.isChain() {
		for _, p := range j.held {
			rows = append(rows, store.Part{SlurmID: uint32(p.id), Step: p.step, NodeList: slurmctl.CompressNodes(p.nodes)})
		}
	}
	return rows
}
