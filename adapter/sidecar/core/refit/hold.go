package refit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/plan"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// addFreed adds the nodes for which promises gave way: Slurm is about to start stock jobs there.
func addFreed(c *state.Core, o *msg.Occupancy, s *state.Snapshot) { addKeptFor(c, o, s, true) }

// addHeldUp adds the nodes kept for stock jobs, from the last moment that their budgets allow. So
// no new plan makes the stock jobs later than that.
func addHeldUp(c *state.Core, o *msg.Occupancy, s *state.Snapshot) { addKeptFor(c, o, s, false) }

func addKeptFor(c *state.Core, o *msg.Occupancy, s *state.Snapshot, freed bool) {
	now := s.Taken.Unix()
	for _, id := range slices.Sorted(maps.Keys(c.Delays.Jobs)) {
		h := c.Delays.Jobs[id]
		if !plan.KeepsNodes(c, h, c.Now) || plan.IsFreed(c, h, c.Now) != freed {
			continue
		}
		from, until := plan.KeptFor(c, h, now)
		for _, name := range h.Nodes {
			if n, ok := s.Index[name]; ok {
				o.Add(n, from, until)
			}
		}
	}
}

// LimitOf returns the time limit in seconds of the Slurm job that begins with step i of j. A hold to
// start in lasts as long. Slurm ends a running job together with its reservation, and nothing moves
// the job out of the hold while the sidecar is down. That costs other jobs of Slurm nothing: once
// the job runs, its nodes are taken until then anyway.
func LimitOf(c *state.Core, j *state.Job, i int) int64 {
	choice := 0
	if j.Moldable != nil {
		choice = j.Moldable.Choice
	}
	return plan.LimitOfAs(c, j, i, choice)
}

// Forsake ends a job's plan with its current step, or with its first one if Slurm is starting it.
func Forsake(c *state.Core, j *state.Job, end int64) {
	plan := slices.Clone(j.Plan[:max(j.Step, 1)])
	plan[len(plan)-1].End = end
	c.StorePlan(j, plan)
	j.Forsake()
}

// yield gives up the promise for the coming steps of a running job, since another job's plan comes first.
func yield(c *state.Core, j, to *state.Job, why string) {
	c.Event(j, "lapsed", map[string]any{"in": j.Step, "for": to.SlurmID})
	Forsake(c, j, j.Plan[j.Step-1].End)
	j.Forgone, j.ForgoneIn, j.YieldedTo = why, j.Step, to.BaseID()
	c.LogJob(j).Warn(j.Reason().Words())
}

// whyAfter returns why a job is planned after another one that has its nodes.
func whyAfter(j, to *state.Job) string {
	if beganFirst(j, to) < 0 {
		return fmt.Sprintf("%s keeps %s: "+slurm.PinnedText, msg.JobNumber(to.SlurmID), slurm.Pinned(to), slurm.Pinned(to))
	}
	return msg.JobNumber(to.SlurmID) + ", which began before it, is planned first"
}

// supposed returns until when a running job without a plan keeps each of its nodes, if it gives back the last
// nodes first.
func supposed(j *state.Job) map[string]int64 {
	until := map[string]int64{}
	if j.Step == 0 {
		return until
	}
	nodes := j.Nodes()
	slurm.BoundFirst(j, nodes)
	for i, name := range nodes {
		until[name] = j.Expected()
		for k := j.Step; k < len(j.Profile) && i < j.Profile[k].Nodes; k++ {
			until[name] += j.Profile[k].Duration
		}
	}
	return until
}

// Keeps lists the nodes that a job with a lapsed promise will not give back at the end of its step: as many as
// the next step has. The others are taken back once another job needs them (watchOverrun).
func Keeps(j *state.Job) []string {
	nodes := Own(j)
	slurm.BoundFirst(j, nodes)
	if !j.Mode.CarriesNodes || j.State == row.Waiting || j.Last() {
		return nodes // until the time limit, or until it is planned
	}
	return nodes[:min(len(nodes), j.Profile[j.Step].Nodes)]
}
