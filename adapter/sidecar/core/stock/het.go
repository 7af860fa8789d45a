package stock

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// The components of a heterogeneous stock job are jobs of their own for Slurm, which starts them together. A list has all of them, with
// the turn of the least urgent one, or none. Slurm's packing finds when there is room for all at once.

// mostTries bounds how often the components of a job are placed.
const mostTries = 20

// hetJob is a heterogeneous job that waits.
type hetJob struct {
	parts  []slurm.Candidate
	turn   slurm.Turn // of its least urgent component
	wanted bool       // by an evolving job: nodes of a component
	out    bool       // a component waits for something else than nodes, or can have none
}

// add adds a component.
func (j *hetJob) add(c *state.Core, s *state.Snapshot, r *slurmctl.Job, now int64, sets *Sets) {
	plain := *r
	plain.Heterogenous = false // for its places
	cand := slurm.Candidate{Record: &plain, Turn: slurm.Turn{Tier: TierOf(c, r, true), Priority: r.Priority}, Earliest: now}
	j.out = j.out || !slurm.Queues(r) || r.Reservation != "" || c.Owner(r.ID) != nil || !placed(c, s, &cand)
	j.wanted = j.wanted || sets.wanted(cand.Nodes)
	if len(j.parts) == 0 || cand.Turn.Compare(j.turn) < 0 {
		j.turn = cand.Turn
	}
	cand.Record = r
	j.parts = append(j.parts, cand)
}

// Components lists the components of waiting heterogeneous stock jobs that Slurm would start before the last of the evolving jobs, if any
// wants nodes of the sets. A job is left out if any component waits for something else than nodes. At most MostOfUser components of a user count.
func Components(c *state.Core, s *state.Snapshot, now int64, lowest slurm.Turn, sets *Sets) (all []slurm.Candidate) {
	if c.Rules.Limits.Preemption() != nil {
		return nil
	}
	jobs := map[slurmctl.JobID]*hetJob{}
	var order []*hetJob
	for i := range s.Jobs {
		r := &s.Jobs[i]
		if !r.Heterogenous || r.State != slurmctl.Pending {
			continue
		}
		j := jobs[r.HetJob()]
		if j == nil {
			j = &hetJob{}
			jobs[r.HetJob()], order = j, append(order, j)
		}
		j.add(c, s, r, now, sets)
	}
	slices.SortStableFunc(order, func(a, b *hetJob) int { return b.turn.Compare(a.turn) })
	of := map[uint32]int{} // components of a user
	for _, j := range order {
		uid := j.parts[0].Record.UID
		if j.out || !j.wanted || j.turn.Compare(lowest) < 0 || len(all)+len(j.parts) > c.Config.StockJobs || of[uid]+len(j.parts) > MostOfUser {
			continue
		}
		of[uid] += len(j.parts)
		for _, cand := range j.parts {
			cand.Turn = j.turn
			all = append(all, cand)
		}
	}
	return all
}

// together collects the components of a heterogeneous job. It returns all of them once it has got the last one.
func (h *nodeShares) together(cand *slurm.Candidate) []slurm.Candidate {
	id := cand.Record.HetJob()
	if h.parts == nil {
		h.parts, h.count = map[slurmctl.JobID][]slurm.Candidate{}, map[slurmctl.JobID]int{}
		for i := range h.s.Jobs {
			if r := &h.s.Jobs[i]; r.Heterogenous && r.State == slurmctl.Pending {
				h.count[r.HetJob()]++
			}
		}
	}
	if h.parts[id] = append(h.parts[id], *cand); len(h.parts[id]) < h.count[id] {
		return nil
	}
	return h.parts[id]
}

// placeTogether places all components of a job at the first second at which there is room for all. It hands each place to a function,
// whose last call for a component counts. It returns the second, or planner.Forever.
func (h *nodeShares) placeTogether(parts []slurm.Candidate, seconds func(*slurmctl.Job) int64, place func(part int, start, end int64, on []int)) int64 {
	at := int64(0)
	for range mostTries {
		before, later := map[int][]stretch{}, at
		for i := range parts {
			cand := parts[i]
			cand.Earliest = max(cand.Earliest, at)
			fits := h.placeTasks(&cand, nil, seconds(cand.Record), func(start, end int64, on []int) {
				for _, n := range on {
					if _, known := before[n]; !known {
						before[n] = append([]stretch(nil), h.nodes[n]...)
					}
				}
				later = max(later, start)
				place(i, start, end, on)
			})
			if fits == 0 {
				later = planner.Forever
				break
			}
		}
		if later == at {
			return at
		}
		for n, list := range before {
			h.nodes[n] = list
		}
		if at = later; at == planner.Forever {
			break
		}
	}
	return planner.Forever
}
