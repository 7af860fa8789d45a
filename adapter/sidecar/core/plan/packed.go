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
	h := sharesBeside(c, s, o, list)
	if h == nil {
		return list
	}
	ends, packed := h.addRunning(o.Origin), make([]slurm.Candidate, 0, len(list))
	h.addBusy(o)
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

// sharesBeside returns the shares of nodes, or nil if no stock job of a list shares any.
func sharesBeside(c *state.Core, s *state.Snapshot, o *msg.Occupancy, list []slurm.Candidate) *nodeShares {
	shares := func(cand slurm.Candidate) bool { return cand.Job == nil && !cand.Record.Exclusive }
	if o.Preemption != nil || c.SlurmConfig.SelectType() == "linear" || !slices.ContainsFunc(list, shares) {
		return nil
	}
	h := newShares(c, s, o)
	h.others = true
	return h
}

// addBusy adds what is busy but for the shares of running stock jobs.
func (h *nodeShares) addBusy(o *msg.Occupancy) {
	for n := range h.nodes {
		for _, b := range o.Busy[n] {
			h.take(n, max(b.Start+o.Origin, h.until[n]), absolute(b.End, o.Origin), &share{whole: true})
		}
	}
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
