package msg

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Some jobs want more of their own placement than the strategy wants for all (--prefer-start, --prefer-waste, --prefer-near).
// The strategy plans them like all others. Then each of them is placed again in what that plan leaves free, so no other
// job's plan moves. What a batch keeps of its plan (Last, Made) is without this.

// Aimed holds what the aim of a job makes of its plan.
type Aimed struct {
	Looked  bool  // the job was placed again
	Crowded bool  // it was not, because others' aims took all the work that a cycle does for that
	Could   int64 // Unix second at which it would start without its aim
	Was, Is int64 // its cost without and with the aim (planner.Pool.AimCost)
	Again   int64 // Unix second from which the result may differ; planner.Forever: none is known
}

// aimedPlan is a plan by a job's aim.
type aimedPlan struct {
	poolPlan
	aimed Aimed
}

// hasAims reports whether any job has an aim that counts. If the plan ignores that jobs evolve, none does.
func (p *Problem) hasAims(with Planner) bool {
	return !with.Rigid() && slices.ContainsFunc(p.Batches, func(b ProblemBatch) bool {
		return slices.ContainsFunc(b.Places, func(at Place) bool { return len(at.Aimed) > 0 })
	})
}

// aimWork bounds how many nodes and busy intervals are looked at for the aims of all jobs in a cycle.
const aimWork = 30_000

// aiming is a job to place again.
type aiming struct {
	*ProblemJob
	place *Place
	job   planner.PoolJob
	was   poolPlan
}

// aiming lists the jobs to place again, in their turns.
func (p *Problem) aiming(plans [][]poolPlan) (all []aiming) {
	for i := range p.Batches {
		b := &p.Batches[i]
		for k, was := range plans[i] {
			at := slices.IndexFunc(b.Places, func(at Place) bool { return Same(at.Nodes, was.Names) })
			if at < 0 || was.Unfit != "" {
				continue
			}
			if job, aims := b.Places[at].Aimed[k]; aims {
				all = append(all, aiming{&b.Jobs[k], &b.Places[at], job, was})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b aiming) int { return cmp.Compare(a.Turn, b.Turn) })
	return all
}

// byAims places jobs again by their aims. o holds what is certain, and gets all plans. A job's place without its aim stays
// its own, so that no other job's aim takes it.
func (p *Problem) byAims(o *Occupancy, plans [][]poolPlan, errs *[]error) map[slurmctl.JobID]aimedPlan {
	for _, batch := range plans {
		for _, one := range batch {
			o.Take(one.Names, []planner.Planned{one.Planned})
		}
	}
	all, work := map[slurmctl.JobID]aimedPlan{}, aimWork
	for _, j := range p.aiming(plans) {
		was := j.was
		if work -= len(was.Names); work <= 0 {
			all[j.ID] = aimedPlan{was, Aimed{Crowded: true}}
			continue
		}
		o.giveBack(was.Names, was.Planned)
		pool := j.place.Pool
		pool.Busy, pool.Jobs = o.Window(was.Names, Rank{}), []planner.PoolJob{j.job}
		work -= len(pool.Busy) / 4
		o.Take(was.Names, []planner.Planned{was.Planned})
		until := was.Start + j.Patience
		if j.CouldStart > 0 {
			until = j.CouldStart + j.Patience - o.Origin
		}
		best, found, err := pool.Aim(j.Aim, was.Planned, until, &work)
		if err != nil {
			*errs = append(*errs, err)
			continue
		}
		if found {
			o.Take(was.Names, []planner.Planned{best})
		}
		again := pool.AimDiffers(until)
		if again != planner.Forever {
			again += o.Origin
		}
		all[j.ID] = aimedPlan{poolPlan{best, was.Names},
			Aimed{Looked: true, Could: was.Start + o.Origin, Was: pool.AimCost(j.Aim, was.Planned), Is: pool.AimCost(j.Aim, best), Again: again}}
	}
	return all
}

// giveBack undoes Take for the plan of a job.
func (o *Occupancy) giveBack(nodes []int, p planner.Planned) {
	at := p.Start + o.Origin
	for k, step := range p.Steps {
		for _, n := range p.Nodes[k] {
			if b, ok := o.Interval(nodes[n], at, at+step.Duration); ok {
				if i := slices.Index(o.Busy[nodes[n]], b); i >= 0 {
					o.Busy[nodes[n]] = slices.Delete(o.Busy[nodes[n]], i, i+1)
				}
			}
		}
		at += step.Duration
	}
}
