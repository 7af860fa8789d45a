package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A promise gives way to a stock job that could start this moment, and would otherwise be later
// than its budget. Nothing else takes these nodes until Slurm has started the job, or has had the
// time to. The job that held them goes on with what it has: its coming steps are planned again
// when it ends the present one.

// giveWay has promises lapse for those of a list that would be too late. The lanes have all
// places of the list, without promises.
func (c *Core) giveWay(s *snapshot, free *lanes, list []placed, budgets config.Delays, from []int64, now int64) {
	var with []placed // where the list would be beside the promises; nil: not known
	latest := map[slurmctl.JobID]int64{}
	for i := range list {
		p := &list[i]
		h := c.delays.jobs[p.record.ID]
		if !p.stock || h == nil || !h.now {
			continue
		}
		if with == nil {
			with = c.placeBeside(s, list, from, now)
		}
		at := max(now, h.since.Unix()+int64(budgets.Of(p.record.Partition, p.record.QOS)/time.Second))
		late := with[i].start > at
		nodes, lapse := c.cheapest(s, free, p, func(j *job) bool {
			return late || with[i].start > now && c.outranks(p.record, &j.record)
		}, now)
		if len(lapse) == 0 {
			latest[p.record.ID] = at
			continue
		}
		h.freed, h.nodes, h.from, with = c.now, nodes, now, nil
		for _, j := range lapse {
			c.giveWayTo(j, p.record, c.budgetOf(p.record, budgets, j))
		}
	}
	if with == nil {
		with = c.placeBeside(s, list, from, now)
	}
	c.keepSlots(s, with, latest, from, now)
}

// placeBeside finds the places of a list beside all promises.
func (c *Core) placeBeside(s *snapshot, list []placed, from []int64, now int64) []placed {
	with := slices.Clone(list)
	lanesOf(c.occupiedBut(s, now, c.holdsAny)).place(with, from)
	return with
}

// obstacle is a running job whose promises keep nodes from another one.
type obstacle struct {
	job   *job
	nodes set
	cost  int64 // node-seconds promised
	first int64 // Unix second of its first growth
}

// cheapest finds the jobs whose promises must lapse so that a stock job can start now, of those
// that may: the fewest node-seconds are lost, and no promise lapses for nothing. It returns the
// nodes that the stock job has then.
func (c *Core) cheapest(s *snapshot, idle *lanes, p *placed, may func(*job) bool, now int64) (nodes []string, lapse []*job) {
	end := now + seconds(p.record.TimeLimit)
	all := c.obstacles(end)
	need := len(p.at)
	has := c.couldHave(s, idle, p)
	free := func(lapsed []obstacle) (names []string) {
		for _, name := range has {
			if !slices.ContainsFunc(all, func(x obstacle) bool {
				return x.nodes[name] && !slices.ContainsFunc(lapsed, func(y obstacle) bool { return x.job == y.job })
			}) {
				names = append(names, name)
			}
		}
		return names
	}
	var lapsed []obstacle
	for _, x := range all {
		if len(free(lapsed)) >= need {
			break
		}
		if may(x.job) && x.nodes.any(has) {
			lapsed = append(lapsed, x)
		}
	}
	if len(free(lapsed)) < need {
		return nil, nil
	}
	for i := len(lapsed) - 1; i >= 0; i-- { // the dearest first
		if rest := slices.Delete(slices.Clone(lapsed), i, i+1); len(free(rest)) >= need {
			lapsed = rest
		}
	}
	for _, x := range lapsed {
		lapse = append(lapse, x.job)
	}
	return free(lapsed)[:need], lapse
}

// couldHave lists the nodes that a job could have from now on if nothing were promised, beside what
// the others of its list have: those of its own place first.
func (c *Core) couldHave(s *snapshot, idle *lanes, p *placed) (names []string) {
	for _, n := range p.at {
		names = append(names, s.nodes[n].Name)
	}
	for _, n := range p.nodes {
		if !slices.Contains(p.at, n) && s.idle(n) && idle.free(n, p.profile[0].Duration) {
			names = append(names, s.nodes[n].Name)
		}
	}
	return names
}

// obstacles lists the running jobs that are promised nodes before a Unix second, the cheapest
// promise first, of equal ones the one furthest away.
func (c *Core) obstacles(end int64) (all []obstacle) {
	for _, j := range c.active {
		x := obstacle{job: j, nodes: set{}, first: planner.Forever}
		for _, g := range c.heldGains(j) {
			start := j.plan[g.step-1].start
			x.cost += int64(len(g.nodes)) * max(g.end-start, 0)
			x.first = min(x.first, start)
			if start < end {
				x.nodes.add(g.nodes)
			}
		}
		if len(x.nodes) > 0 {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b obstacle) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(b.first, a.first), cmp.Compare(b.job.SlurmID, a.job.SlurmID))
	})
	return all
}

// giveWayTo has what is promised to a running job lapse for a stock job.
func (c *Core) giveWayTo(j *job, r *slurmctl.Job, budget time.Duration) {
	c.event(j, "lapsed", map[string]any{"before": j.Step + 1, "budget": int64(budget / time.Second)})
	c.forsake(j, max(j.plan[j.Step-1].end, j.plan[j.Step-1].start))
	j.forgone, j.forgoneIn = fmt.Sprintf("a waiting job would have started more than %v later because of its holds", budget), j.Step
	if budget == 0 {
		j.forgone = "Slurm puts a waiting job first that would have started later because of its holds"
	}
	j.reason = saying(whyLapsed, j.lapsedWords())
	c.logJob(j).WithField("for", r.ID).Warn(j.reason.words())
}

// holdsAny reports whether nodes are held for a growth of a running job.
func (c *Core) holdsAny(j *job) bool { return len(c.heldGains(j)) > 0 }

// keepSlots finds the place at which each job that is held up is to start at the latest, beside the
// promises: where its budget ends, or where it would start beside them.
func (c *Core) keepSlots(s *snapshot, with []placed, latest map[slurmctl.JobID]int64, from []int64, now int64) {
	var held []placed
	for _, p := range with {
		at, known := latest[p.record.ID]
		if !p.stock || !known {
			continue
		}
		c.delays.jobs[p.record.ID].keeps(s, p)
		p.earliest = at
		held = append(held, p)
	}
	if len(held) == 0 {
		return
	}
	lanesOf(c.occupiedBut(s, now, c.holdsAny)).place(held, from)
	for _, p := range held {
		if p.start == p.earliest {
			c.delays.jobs[p.record.ID].keeps(s, p)
		}
	}
}

// keeps notes where a job is to start at the latest.
func (h *heldUp) keeps(s *snapshot, p placed) {
	h.nodes, h.from, h.end = nil, p.start, p.start+seconds(p.record.TimeLimit)
	for _, n := range p.at {
		h.nodes = append(h.nodes, s.nodes[n].Name)
	}
}

// addFreed adds the nodes for which promises gave way: Slurm is about to start stock jobs there.
func (c *Core) addFreed(o *occupancy, s *snapshot) { c.addKeptFor(o, s, true) }

// addHeldUp adds the nodes that stock jobs are to have from the last moment on that their budgets leave
// them: no plan that is made now makes them later than that.
func (c *Core) addHeldUp(o *occupancy, s *snapshot) { c.addKeptFor(o, s, false) }

func (c *Core) addKeptFor(o *occupancy, s *snapshot, freed bool) {
	now := s.taken.Unix()
	for _, id := range slices.Sorted(maps.Keys(c.delays.jobs)) {
		h := c.delays.jobs[id]
		if !h.keepsNodes(c.now) || h.isFreed(c.now) != freed {
			continue
		}
		for _, name := range h.nodes {
			if n, ok := s.index[name]; ok {
				o.add(n, max(h.from, now), h.end+max(now-h.from, 0)+untilLook)
			}
		}
	}
}

// keepsNodes reports whether nodes are kept for a job that is yet to start.
func (h *heldUp) keepsNodes(now time.Time) bool {
	return !h.spent && (h.now || h.isFreed(now)) && len(h.nodes) > 0
}

// isFreed reports whether promises gave way to the job lately.
func (h *heldUp) isFreed(now time.Time) bool {
	return !h.freed.IsZero() && now.Sub(h.freed) <= startPatience
}

// withoutHeldUp drops the jobs from a list that have nodes kept already (addKeptFor).
func (c *Core) withoutHeldUp(list []candidate) []candidate {
	if len(c.delays.jobs) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(cand candidate) bool {
		h := c.delays.jobs[cand.record.ID]
		return cand.job == nil && h != nil && h.keepsNodes(c.now)
	})
}
