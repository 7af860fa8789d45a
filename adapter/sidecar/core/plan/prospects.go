package plan

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/stock"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// withProspects adds the jobs that are not submitted yet and have asked for a place. Nobody knows which priority Slurm will give
// them: each comes after all jobs that were there before, and so before those that come later and outrank none of these.
func withProspects(c *state.Core, list, asked []slurm.Candidate) []slurm.Candidate {
	for _, cand := range asked {
		at := 0
		for i := range list {
			if arrival(c, &list[i]).Compare(cand.Arrived) <= 0 {
				at = i + 1
			}
		}
		list = slices.Insert(list, at, cand)
	}
	return list
}

// arrival returns when a job counts as having come.
func arrival(c *state.Core, cand *slurm.Candidate) slurm.Arrival {
	if !cand.Arrived.Asked.IsZero() {
		return cand.Arrived
	}
	if cand.Job != nil {
		if p := c.Turns[cand.Job.BaseID()]; p != nil {
			return slurm.Arrival{Job: p.After, Asked: p.Until}
		}
	}
	return slurm.Arrival{Job: cand.Record.ID}
}

// keepTurns puts jobs whose users asked for a place before evolving jobs that came between the question and the job. Stock jobs are
// not passed. With priorities other than by arrival, no turn is kept: such a job may rank higher.
func keepTurns(c *state.Core, list []slurm.Candidate) []slurm.Candidate {
	if len(c.Turns) == 0 || !c.SlurmConfig.ByArrival() {
		return list
	}
	for i := range list {
		own := arrival(c, &list[i])
		for k := i; !own.Asked.IsZero() && k > 0; k-- {
			other := &list[k-1]
			if other.Job == nil || other.Turn.Tier != list[k].Turn.Tier || arrival(c, other).Compare(own) <= 0 {
				break
			}
			list[k-1], list[k] = list[k], list[k-1]
		}
	}
	return list
}

// PlaceBinds is how long a place is kept. The job may come as late as that, so a gap that is just long enough at the question
// would be too short: it is planned with a last step that is longer by that time.
const PlaceBinds = 15 * time.Second

// prospects lists these jobs, first come first.
func prospects(c *state.Core, s *state.Snapshot, now int64) (list []slurm.Candidate) {
	for _, p := range c.Prospects {
		j := p.Job
		nodes, choices, err := slurm.PlacesOf(c, s, j)
		if err == nil && len(nodes) == 0 {
			p.Unfit, p.Made = slurm.Nowhere(c, s, j), true
			continue
		}
		if err != nil {
			p.Unfit, p.Made = err.Error(), true
			continue
		}
		cand := slurm.Candidate{Job: j, Late: int64(PlaceBinds / time.Second), Arrived: slurm.Arrival{Job: p.After, Asked: p.Until}, Earliest: now, Record: &j.Record, Turn: slurm.Turn{stock.TierOf(c, &j.Record, false), 0}, Nodes: nodes, Choices: choices,
			Rank: slurm.RankOf(c, &j.Record)}
		if licenses, why, known := slurm.LicensesOf(c, j); why != "" {
			p.Unfit, p.Made = why, true
			continue
		} else if known {
			cand.Licenses = licenses
		}
		if mayChoose(j) {
			if cand.Molds, err = alternatives(c, j); err != nil {
				p.Unfit, p.Made = err.Error(), true
				continue
			}
		}
		cand.Profile = cand.Profiles()[0]
		if !j.Begin.IsZero() {
			cand.Earliest = c.Since(now, j.Begin.Unix())
		}
		list = append(list, cand)
	}
	return list
}

// takeProspect stores the plan of a job that is not submitted yet, and reports whether it is one.
func takeProspect(c *state.Core, p msg.PlannedJob) bool {
	i := slices.IndexFunc(c.Prospects, func(one *state.Prospect) bool { return one.BaseID() == p.Job })
	if i < 0 {
		return false
	}
	one := c.Prospects[i]
	one.Made, one.Unfit, one.Plan, one.Offer = true, p.Unfit, nil, nil
	if p.Unfit != "" {
		one.Unfit = slurm.OutsideText(c, c.Snapshot, one.Job, p.Unfit)
	}
	for _, step := range p.Steps {
		one.Plan = append(one.Plan, msg.PlannedStep{Start: step.Start, End: step.End, Nodes: step.Nodes, At: step.At})
	}
	return true
}

// Roomy returns how many nodes suit a job, and how many of these it could have now and keep for as long as its profile says.
func Roomy(c *state.Core, s *state.Snapshot, o *msg.Occupancy, j *state.Job) (all, free int) {
	nodes, _, err := slurm.PlacesOf(c, s, j)
	if err != nil {
		return 0, 0
	}
	lasts := j.Profile.Duration()
	for _, n := range nodes {
		if busy := o.Busy[n]; s.Nodes[n].Usable() && !slices.ContainsFunc(busy, func(b planner.NodeBusy) bool { return b.Start < lasts && b.End > 0 }) {
			free++
		}
	}
	return len(nodes), free
}

// FirstProspect is the first of the IDs of jobs that are not submitted yet. Slurm has none so high (MaxJobId).
const FirstProspect slurmctl.JobID = 0xf0000000
