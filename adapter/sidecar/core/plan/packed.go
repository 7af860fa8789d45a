package plan

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Plans count whole nodes, as evolving jobs take them. Of a stock job that shares nodes, a plan counts only the nodes, and the time,
// that no other stock job has anyway. Slurm's packing tells which these are: each stock job as early as it fits beside those before it.
//
// If Slurm starts such a job later than predicted, an evolving job behind it waits for longer than planned. If Slurm starts it earlier,
// nodes are free earlier than planned. Running jobs' growths have holds, so a wrong prediction is not at their cost.

// Packed returns a list as the planner sees it. It leaves out the stock jobs that only take what others leave of their nodes.
func Packed(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Candidate) []slurm.Candidate {
	if o.Preemption != nil || !slices.ContainsFunc(list, func(cand slurm.Candidate) bool { return shares(c, &cand) }) {
		return list
	}
	h, ends := sharesBeside(c, s, o)
	packed := make([]slurm.Candidate, 0, len(list))
	for _, cand := range list {
		if cand.Job != nil {
			h.takePlan(cand.Job)
		} else if !h.pack(&cand, ends) {
			continue
		}
		packed = append(packed, cand)
	}
	return packed
}

// PlaceShared does what slurm.Lanes.Place does if stock jobs of a list share nodes: all get the places that Slurm's packing gives them. It
// reports false if none shares any.
func PlaceShared(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Placed, held []int64) bool {
	if o.Preemption != nil || !slices.ContainsFunc(list, func(p slurm.Placed) bool { return shares(c, &p.Candidate) }) {
		return false
	}
	h, ends := sharesBeside(c, s, o)
	h.held = held
	for i := range list {
		p, cand := &list[i], list[i].Candidate
		record := *p.Record
		if cand.Record = &record; p.Stock {
			record.ArrayTasks = 1
		} else if c.Owner(record.ID) == nil {
			record.ArrayTasks-- // the first task has its own place
		} else {
			record.NumNodes, record.ArrayTasks, record.Exclusive = p.Profile[0].Nodes, 1, true
		}
		p.Start, p.At = planner.Forever, nil
		h.placeTasks(&cand, ends, min(p.Profile[0].Duration, TaskSeconds(&record)), func(start, _ int64, on []int) {
			if start < p.Start {
				p.Start, p.At = start, on
			}
		})
	}
	return true
}

// shares reports whether a job is a stock job that may share its nodes.
func shares(c *state.Core, cand *slurm.Candidate) bool {
	return !cand.Record.Exclusive && c.Owner(cand.Record.ID) == nil && c.SlurmConfig.SelectType() != "linear"
}

// sharesBeside returns what nodes have left beside running stock jobs and what is certain, and when tasks of arrays end.
func sharesBeside(c *state.Core, s *state.Snapshot, o *msg.Occupancy) (*nodeShares, map[slurmctl.JobID][]int64) {
	h := newShares(c, s, o)
	h.others = true
	ends := h.addRunning(o.Origin)
	for n := range h.nodes {
		for _, b := range o.Busy[n] {
			h.take(n, max(b.Start+o.Origin, h.until[n]), absolute(b.End, o.Origin), &share{whole: true})
		}
	}
	return h, ends
}

// takePlan takes the nodes of a queued job's plan.
func (h *nodeShares) takePlan(j *state.Job) {
	for _, step := range j.Plan {
		for _, name := range step.Nodes {
			if n, known := h.s.Index[name]; known {
				h.take(n, step.Start, step.End+slurm.Margin(h.c), &share{whole: true})
			}
		}
	}
}

// pack takes a stock job's place, and makes the job ask only for what no other stock job has anyway. It reports false if that is
// nothing.
func (h *nodeShares) pack(cand *slurm.Candidate, ends map[slurmctl.JobID][]int64) bool {
	r := cand.Record
	if r.Reservation != "" {
		return true
	}
	start, from, to, added := planner.Forever, planner.Forever, int64(0), []int(nil)
	tasks := h.placeTasks(cand, ends, TaskSeconds(r), func(at, end int64, on []int) {
		start = min(start, at)
		for _, n := range on {
			if first, last := h.unused(n, at, end); first < last {
				from, to, added = min(from, first), max(to, last), append(added, n)
			}
		}
	})
	if tasks < max(r.ArrayTasks, 1) || cand.Licenses != nil || h.shareOf(r).whole {
		return true
	}
	slices.Sort(added)
	added = slices.Compact(added)
	if len(added) == 0 {
		return false
	}
	cand.Profile = slices.Clone(cand.Profile)
	cand.Profile[0].Nodes = min(cand.Profile[0].Nodes, len(added))
	if tasks == 1 {
		cand.Earliest, cand.Prefer = from, added
		if from > start {
			cand.Profile[0].Duration = to - from
		}
	}
	return true
}

// unused returns the first and the last second of a time in which no job uses a node; both are 0 if there are none.
func (h *nodeShares) unused(node int, start, end int64) (first, last int64) {
	list := h.nodes[node]
	for i := range list {
		until := end
		if i+1 < len(list) {
			until = min(end, list[i+1].from)
		}
		if from := max(start, list[i].from); from < until && !list[i].used {
			if last == 0 {
				first = from
			}
			last = until
		}
	}
	return first, last
}
