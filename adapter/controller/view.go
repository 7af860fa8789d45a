package controller

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/config"
	"github.com/evoslurm/evoslurm/adapter/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// view is what the API shows: made after every round, never changed.
type view struct {
	status    api.Status
	jobs      []api.Job // active
	ended     []api.Job
	owners    map[uint32]uint32 // Slurm id → uid
	coming    map[uint32]bool   // Slurm ids of jobs that are to be adopted
	operators config.Operators
	slurmUser uint32
	reading   api.Reading
	alias     map[uint32]uint32 // Slurm id of a companion or link → base job
}

// publish makes the present state visible to the API.
func (c *Controller) publish() {
	v := &view{owners: map[uint32]uint32{}, coming: map[uint32]bool{}, alias: map[uint32]uint32{}, operators: c.cfg.Operators, slurmUser: c.slurmUser, reading: c.reading()}
	v.status = api.Status{Version: c.version, Cluster: c.slurmConfig.ClusterName, SlurmVersion: c.slurmConfig.Version,
		Drive: string(c.drive), DriveReason: c.driveReason, Strategy: c.strategies.Name(), StrategyNote: c.strategies.Note(), Started: c.started, SlurmCalls: c.cycleCalls}
	if c.snapshot != nil {
		v.status.Nodes, v.status.LastCycle = len(c.snapshot.nodes), c.snapshot.taken
	}
	if c.lastErr != nil {
		v.status.LastError = "its last look at Slurm failed: " + c.lastErr.Error()
	} else if c.refusing {
		v.status.LastError = "the database cannot be written; nothing is asked of Slurm that must be written down before"
	}
	for _, j := range c.active {
		v.jobs = append(v.jobs, c.describe(j))
	}
	for _, id := range slices.Sorted(maps.Keys(c.refused)) {
		r := c.refused[id]
		v.jobs = append(v.jobs, r)
		v.owners[r.ID], v.alias[r.ID] = r.UID, r.ID
	}
	for _, j := range c.ended {
		v.ended = append(v.ended, c.describe(j))
	}
	for _, j := range slices.Concat(c.ended, c.active) {
		v.owners[j.SlurmID], v.alias[j.SlurmID] = j.UID, j.SlurmID
	}
	for id, uid := range c.coming {
		v.owners[uint32(id)], v.coming[uint32(id)] = uid, c.isComing(id)
	}
	for id, j := range c.byID {
		v.owners[uint32(id)], v.alias[uint32(id)] = j.UID, j.SlurmID
	}
	c.view.Store(v)
}

// describe is a job as evosqueue shows it.
func (c *Controller) describe(j *job) api.Job {
	nodes := j.nodes()
	a := api.Job{ID: j.SlurmID, Name: j.Name, User: j.User, UID: j.UID, Partition: c.partitionShown(j), State: string(j.State),
		Reason: j.why(), EndState: j.EndState, Drive: j.Drive, ExpandLimit: c.expandLimit(j).String(), Profile: j.Profile.String(),
		Step: j.Step, Steps: len(j.Profile), Nodes: len(nodes), NodeList: slurmctl.CompressNodes(nodes), Priority: j.priority,
		Submit: j.Submitted, Start: j.Started, End: j.Ended, Plan: []api.Span{}, Past: []api.Span{}}
	for i, p := range j.plan {
		a.Plan = append(a.Plan, api.Span{Step: i + 1, Start: time.Unix(p.start, 0), End: time.Unix(p.end, 0),
			Nodes: j.Profile[i].Nodes, NodeList: slurmctl.CompressNodes(p.nodes)})
	}
	for _, p := range j.past {
		a.Past = append(a.Past, api.Span{Step: p.Step, Start: p.Start, End: p.End, Nodes: p.Nodes, NodeList: p.NodeList})
	}
	if j.State == store.Ended {
		a.Nodes, a.NodeList = 0, ""
		return a
	}
	if len(j.plan) > 0 && !j.lapsed() {
		if a.Start.IsZero() {
			a.Start = a.Plan[0].Start
		}
		a.End = a.Plan[len(a.Plan)-1].End
	}
	switch next := j.next(); {
	case next != nil:
		a.NextChange, a.NextNodes = time.Unix(next.start, 0), j.Profile[j.Step].Nodes
	case len(j.plan) > 0 && !j.lapsed():
		a.NextChange = a.End
	}
	if a.Reason == "" && j.State == store.Queued && len(j.plan) > 0 {
		a.Reason = "planned"
	}
	if j.isSuspended() {
		a.State = api.Suspended
	}
	if a.Reason == "" {
		a.Reason = j.short
	}
	return a
}

// allocation is what a job holds now, with the CPUs of its nodes: evolving jobs
// take whole nodes.
func (c *Controller) allocation(j *job) api.Allocation {
	a := api.Allocation{Ready: true, Job: j.SlurmID, Step: j.Step, Steps: len(j.Profile), Drive: j.Drive, Nodes: len(j.nodes()), Parts: []api.Part{}}
	for _, p := range j.held {
		part := api.Part{Job: uint32(p.id), NodeList: p.nodes, CPUs: make([]int, len(p.nodes))}
		for i, name := range p.nodes {
			if c.snapshot != nil {
				if n, ok := c.snapshot.index[name]; ok {
					part.CPUs[i] = c.snapshot.nodes[n].CPUs
				}
			}
		}
		a.Parts = append(a.Parts, part)
	}
	return a
}

// jobNumber names a job in messages.
func jobNumber(id uint32) string {
	return strings.TrimSpace("job " + strconv.FormatUint(uint64(id), 10))
}
