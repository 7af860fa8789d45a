package stock

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
	packs := func(cand slurm.Candidate) bool {
		return shares(c, &cand) || cand.Job == nil && cand.Record.Heterogenous
	}
	if o.Preemption != nil || !slices.ContainsFunc(list, packs) {
		return list
	}
	h, ends := newShares(c, s, o, true)
	packed := make([]slurm.Candidate, 0, len(list))
	for _, cand := range list {
		switch {
		case cand.Job != nil:
			h.takePlan(cand.Job)
		case cand.Record.Heterogenous:
			packed = append(packed, h.packTogether(&cand)...)
			continue
		case !h.pack(&cand, ends):
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
	h, ends := newShares(c, s, o, true)
	h.held, h.licenses = held, slurm.LicensesNow(c, o)
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

// addCertain adds what is certain beside the shares of running stock jobs.
func (h *nodeShares) addCertain() {
	for n := range h.nodes {
		for _, b := range h.o.Busy[n] {
			h.take(n, max(b.Start+h.o.Origin, h.until[n]), absolute(b.End, h.o.Origin), &share{whole: true})
		}
	}
}

// takePlan takes the nodes and licences of a queued job's plan.
func (h *nodeShares) takePlan(j *state.Job) {
	h.enter(j.Reservation)
	if n := len(j.Plan); n > 0 {
		h.takeLicenses(&j.Record, j.Plan[0].Start, j.Plan[n-1].End)
	}
	for _, step := range j.Plan {
		for _, name := range step.Nodes {
			if n, known := h.s.Index[name]; known {
				h.take(n, step.Start, step.End+slurm.Margin(h.c), &share{whole: true})
			}
		}
	}
}

// demand holds what a stock job takes that no other stock job has anyway.
type demand struct {
	start    int64 // when the job starts
	from, to int64 // when it takes the nodes
	nodes    []int
}

// add adds what the job takes of some nodes.
func (d *demand) add(h *nodeShares, start, end int64, on []int) {
	d.start = min(d.start, start)
	for _, n := range on {
		if from, to := h.unused(n, start, end); from < to {
			d.from, d.to, d.nodes = min(d.from, from), max(d.to, to), append(d.nodes, n)
		}
	}
	slices.Sort(d.nodes)
	d.nodes = slices.Compact(d.nodes)
}

// noDemand is the demand of a job that has no place yet.
func noDemand() demand { return demand{start: planner.Forever, from: planner.Forever} }

// pack takes a stock job's place, and makes the job ask only for what no other stock job has anyway. It reports false if that is
// nothing.
func (h *nodeShares) pack(cand *slurm.Candidate, ends map[slurmctl.JobID][]int64) bool {
	r := cand.Record
	d := noDemand()
	tasks := h.placeTasks(cand, ends, TaskSeconds(r), func(start, end int64, on []int) { d.add(h, start, end, on) })
	if tasks < max(r.ArrayTasks, 1) || cand.Licenses != nil || h.shareOf(r).whole {
		return true
	}
	if len(d.nodes) > 0 {
		d.ask(cand, tasks)
	}
	return len(d.nodes) > 0
}

// ask makes a job of so many tasks ask for its demand alone.
func (d *demand) ask(cand *slurm.Candidate, tasks int) {
	cand.Profile = slices.Clone(cand.Profile)
	cand.Profile[0].Nodes = min(cand.Profile[0].Nodes, len(d.nodes))
	if tasks > 1 {
		return
	}
	cand.Earliest, cand.Prefer = d.from, d.nodes
	if d.from > d.start {
		cand.Profile[0].Duration = d.to - d.from
	}
}

// packTogether does what pack does for the components of a heterogeneous job, and returns these, once it has got the last one.
func (h *nodeShares) packTogether(cand *slurm.Candidate) (packed []slurm.Candidate) {
	parts := h.together(cand)
	demands := make([]demand, len(parts))
	if len(parts) == 0 || h.placeTogether(parts, TaskSeconds, func(i int, start, end int64, on []int) {
		demands[i] = noDemand()
		demands[i].add(h, start, end, on)
	}) == planner.Forever {
		return nil
	}
	for i, d := range demands {
		if len(d.nodes) > 0 {
			d.ask(&parts[i], 1)
			packed = append(packed, parts[i])
		}
	}
	return packed
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
