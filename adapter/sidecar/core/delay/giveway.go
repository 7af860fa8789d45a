package delay

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// A promise gives way to a stock job that could start now, and would otherwise start later than
// its budget allows. Nothing else takes these nodes until Slurm has started the job, or has had
// enough time to start it. The job that held the nodes continues with the nodes it has. Its coming
// steps are planned again when it ends the current step.

// giveWay makes promises lapse for listed jobs that would start too late. The lanes contain the
// places of all listed jobs, without promises.
func giveWay(c *state.Core, s *state.Snapshot, free *slurm.Lanes, list []slurm.Placed, budgets config.Delays, from []int64, now int64) {
	var with []slurm.Placed // the places of the list beside the promises; nil if not known
	latest := map[slurmctl.JobID]int64{}
	for i := range list {
		p := &list[i]
		h := c.Delays.Jobs[p.Record.ID]
		if !p.Stock || h == nil || !h.Now {
			continue
		}
		if with == nil {
			with = placeBeside(c, s, list, from, now)
		}
		at := max(now, h.Since.Unix()+int64(budgets.Of(p.Record.Partition, p.Record.QOS)/time.Second))
		late := with[i].Start > at
		may := func(j *state.Job) bool {
			return late || with[i].Start > now && Outranks(c, p.Record, &j.Record)
		}
		nodes, lapse := cheapest(c, s, free, p, may, now)
		if len(lapse) == 0 && late {
			nodes, lapse = beside(c, s, list, i, may, from, at, now)
		}
		if len(lapse) == 0 {
			latest[p.Record.ID] = at
			continue
		}
		if !late {
			at = now
		}
		needed := needed(c, s, list, i, lapse, from, at, now)
		if len(needed) == len(lapse) {
			h.Freed, h.Nodes, h.From = c.Now, nodes, now
		} else {
			latest[p.Record.ID] = at // it starts within its budget, beside the promises that stay
		}
		with = nil
		for _, j := range needed {
			giveWayTo(c, j, p.Record, budgetOf(c, p.Record, budgets, j))
		}
	}
	if with == nil {
		with = placeBeside(c, s, list, from, now)
	}
	keepSlots(c, s, with, latest, from, now)
}

// beside returns what cheapest returns for job i of a list if the jobs before it can have other nodes only where
// promises lapse: all jobs whose promises may, if job i then starts by a Unix second.
func beside(c *state.Core, s *state.Snapshot, list []slurm.Placed, i int, may func(*state.Job) bool, from []int64, at, now int64) (nodes []string, lapse []*state.Job) {
	for _, x := range obstacles(c, now+slurm.Seconds(list[i].Record.TimeLimit)) {
		if may(x.job) {
			lapse = append(lapse, x.job)
		}
	}
	if len(lapse) == 0 {
		return nil, nil
	}
	placed := placeBut(c, s, list, lapse, from, now)[i]
	if placed.Start > at {
		return nil, nil
	}
	for _, n := range placed.At {
		nodes = append(nodes, s.Nodes[n].Name)
	}
	return nodes, lapse
}

// needed returns the jobs of lapse, the cheapest first, whose promises must lapse so that job i of a list starts by
// a Unix second. The promises that cost least stay, as many as let the job start in time. It places the list
// O(log n) times for n jobs, since users choose how many there are.
func needed(c *state.Core, s *state.Snapshot, list []slurm.Placed, i int, lapse []*state.Job, from []int64, at, now int64) []*state.Job {
	stay := sort.Search(len(lapse)-1, func(k int) bool {
		return placeBut(c, s, list, lapse[k+1:], from, now)[i].Start > at
	})
	return lapse[stay:]
}

// placeBeside returns the list with the places that the jobs get beside all promises.
func placeBeside(c *state.Core, s *state.Snapshot, list []slurm.Placed, from []int64, now int64) []slurm.Placed {
	return placeBut(c, s, list, nil, from, now)
}

// placeBut returns the list with the places that the jobs get beside the promises of all jobs but some.
func placeBut(c *state.Core, s *state.Snapshot, list []slurm.Placed, lapsed []*state.Job, from []int64, now int64) []slurm.Placed {
	with := slices.Clone(list)
	place(c, s, with, from, now, func(j *state.Job) bool { return holdsAny(c, j) && !slices.Contains(lapsed, j) })
	return with
}

// obstacle describes a running job whose promises keep nodes from another job.
type obstacle struct {
	job   *state.Job
	nodes msg.Set
	cost  int64 // node-seconds promised
	first int64 // Unix second of its first growth
}

// cheapest returns the jobs whose promises must lapse so that a stock job can start now, and the
// nodes that the stock job then gets. It chooses only among jobs accepted by may, prefers promises of
// few node-seconds, and lets no promise lapse unnecessarily.
func cheapest(c *state.Core, s *state.Snapshot, idle *slurm.Lanes, p *slurm.Placed, may func(*state.Job) bool, now int64) (nodes []string, lapse []*state.Job) {
	end := now + slurm.Seconds(p.Record.TimeLimit)
	all := obstacles(c, end)
	need := len(p.At)
	has := couldHave(c, s, idle, p)
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
		if may(x.job) && x.nodes.Any(has) {
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
func couldHave(c *state.Core, s *state.Snapshot, idle *slurm.Lanes, p *slurm.Placed) (names []string) {
	for _, n := range p.At {
		names = append(names, s.Nodes[n].Name)
	}
	if p.Parts != nil { // it may not have any others instead
		return names
	}
	for _, n := range p.Nodes {
		if !slices.Contains(p.At, n) && slurm.Idle(s, n) && idle.Free(n, p.Profile[0].Duration) {
			names = append(names, s.Nodes[n].Name)
		}
	}
	return names
}

// obstacles lists the running jobs that are promised nodes before a Unix second, the cheapest
// promise first. If promises cost the same, the promise furthest in the future comes first.
func obstacles(c *state.Core, end int64) (all []obstacle) {
	for _, j := range c.Active {
		x := obstacle{job: j, nodes: msg.Set{}, first: planner.Forever}
		for _, g := range heldGains(c, j) {
			start := j.Plan[g.Step-1].Start
			x.cost += int64(len(g.Nodes)) * max(g.End-start, 0)
			x.first = min(x.first, start)
			if start < end {
				x.nodes.Add(g.Nodes)
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

// giveWayTo makes the promises to a job lapse for a stock job.
func giveWayTo(c *state.Core, j *state.Job, r *slurmctl.Job, budget time.Duration) {
	step := max(j.Step, 1)
	c.Event(j, "lapsed", map[string]any{"before": step + 1, "budget": int64(budget / time.Second)})
	refit.Forsake(c, j, max(j.Plan[step-1].End, j.Plan[step-1].Start))
	if budget == 0 {
		j.Forgo("Slurm puts a waiting job first that would have started later because of its holds")
	} else {
		j.Forgo(fmt.Sprintf("a waiting job would have started more than %v later because of its holds", budget))
	}
	c.LogJob(j).WithField("for", r.ID).Warn(j.Reason().Words())
}

// holdsAny reports whether nodes are held for a growth of a running job.
func holdsAny(c *state.Core, j *state.Job) bool { return len(heldGains(c, j)) > 0 }

// keepSlots finds the latest place of each job that is held up. The place begins at the end of the
// job's budget, or when the job would start beside the promises.
func keepSlots(c *state.Core, s *state.Snapshot, with []slurm.Placed, latest map[slurmctl.JobID]int64, from []int64, now int64) {
	var held []slurm.Placed
	for _, p := range with {
		at, known := latest[p.Record.ID]
		if !p.Stock || !known {
			continue
		}
		slurm.Keeps(c.Delays.Jobs[p.Record.ID], s, p)
		p.Earliest = at
		held = append(held, p)
	}
	if len(held) == 0 {
		return
	}
	place(c, s, held, from, now, func(j *state.Job) bool { return holdsAny(c, j) })
	for _, p := range held {
		if p.Start == p.Earliest {
			slurm.Keeps(c.Delays.Jobs[p.Record.ID], s, p)
		}
	}
}
