package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A promise gives way to a stock job that could start now, and would otherwise start later than
// its budget allows. Nothing else takes these nodes until Slurm has started the job, or has had
// enough time to start it. The job that held the nodes continues with the nodes it has. Its coming
// steps are planned again when it ends the current step.

// giveWay makes promises lapse for listed jobs that would start too late. The lanes contain the
// places of all listed jobs, without promises.
func (c *Core) giveWay(s *snapshot, free *lanes, list []placed, budgets config.Delays, from []int64, now int64) {
	var with []placed // the places of the list beside the promises; nil if not known
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
		if !late {
			at = now
		}
		needed := c.needed(s, list, i, lapse, from, at, now)
		if len(needed) == len(lapse) {
			h.freed, h.nodes, h.from = c.now, nodes, now
		} else {
			latest[p.record.ID] = at // it starts within its budget, beside the promises that stay
		}
		with = nil
		for _, j := range needed {
			c.giveWayTo(j, p.record, c.budgetOf(p.record, budgets, j))
		}
	}
	if with == nil {
		with = c.placeBeside(s, list, from, now)
	}
	c.keepSlots(s, with, latest, from, now)
}

// needed returns the jobs of lapse, the cheapest first, whose promises must lapse so that job i of a list starts by
// a Unix second. The promises that cost least stay, as many as let the job start in time. It places the list
// O(log n) times for n jobs, since users choose how many there are.
func (c *Core) needed(s *snapshot, list []placed, i int, lapse []*job, from []int64, at, now int64) []*job {
	stay := sort.Search(len(lapse)-1, func(k int) bool {
		return c.placeBut(s, list, lapse[k+1:], from, now)[i].start > at
	})
	return lapse[stay:]
}

// placeBeside returns the list with the places that the jobs get beside all promises.
func (c *Core) placeBeside(s *snapshot, list []placed, from []int64, now int64) []placed {
	return c.placeBut(s, list, nil, from, now)
}

// placeBut returns the list with the places that the jobs get beside the promises of all jobs but some.
func (c *Core) placeBut(s *snapshot, list []placed, lapsed []*job, from []int64, now int64) []placed {
	with := slices.Clone(list)
	lanesOf(c.occupiedBut(s, now, func(j *job) bool { return c.holdsAny(j) && !slices.Contains(lapsed, j) })).place(with, from)
	return with
}

// obstacle describes a running job whose promises keep nodes from another job.
type obstacle struct {
	job   *job
	nodes set
	cost  int64 // node-seconds promised
	first int64 // Unix second of its first growth
}

// cheapest returns the jobs whose promises must lapse so that a stock job can start now, and the
// nodes that the stock job then gets. It chooses only among jobs accepted by may, prefers promises of
// few node-seconds, and lets no promise lapse unnecessarily.
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
	for i := len(lapsed) - 1; i >= 0; i-- { // the most expensive first
		if rest := slices.Delete(slices.Clone(lapsed), i, i+1); len(free(rest)) >= need {
			lapsed = rest
		}
	}
	for _, x := range lapsed {
		lapse = append(lapse, x.job)
	}
	return free(lapsed)[:need], lapse
}

// couldHave lists the nodes that a job could have from now on if nothing were promised, beside the
// places of the other listed jobs. The nodes of the job's own place come first.
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
// promise first. If promises cost the same, the promise furthest in the future comes first.
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

// giveWayTo makes the promises to a running job lapse for a stock job.
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

// keepSlots finds the latest place of each job that is held up. The place begins at the end of the
// job's budget, or when the job would start beside the promises.
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

// keeps records the latest place of a job.
func (h *heldUp) keeps(s *snapshot, p placed) {
	h.nodes, h.from, h.end = nil, p.start, p.start+seconds(p.record.TimeLimit)
	for _, n := range p.at {
		h.nodes = append(h.nodes, s.nodes[n].Name)
	}
}

// addFreed adds the nodes for which promises gave way: Slurm is about to start stock jobs there.
func (c *Core) addFreed(o *occupancy, s *snapshot) { c.addKeptFor(o, s, true) }

// addHeldUp adds the nodes kept for stock jobs, from the last moment that their budgets allow. So
// no new plan makes the stock jobs later than that.
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

// keepsNodes reports whether nodes are kept for a job that has not started yet.
func (h *heldUp) keepsNodes(now time.Time) bool {
	return !h.spent && (h.now || h.isFreed(now)) && len(h.nodes) > 0
}

// isFreed reports whether promises recently gave way to the job.
func (h *heldUp) isFreed(now time.Time) bool {
	return !h.freed.IsZero() && now.Sub(h.freed) <= startPatience
}

// withoutHeldUp removes jobs from a list if nodes are already kept for them (addKeptFor).
func (c *Core) withoutHeldUp(list []candidate) []candidate {
	if len(c.delays.jobs) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(cand candidate) bool {
		h := c.delays.jobs[cand.record.ID]
		return cand.job == nil && h != nil && h.keepsNodes(c.now)
	})
}
