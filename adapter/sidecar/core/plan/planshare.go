package plan

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/planner"
)

// Planning takes memory and time for every node of every step, and users choose both numbers. It also compares the
// steps of a job with those of the jobs before it, so its time grows with the square of the steps. So each user has
// an equal share of what is planned at a time. The jobs that Slurm puts last wait without a plan until earlier ones of
// the same user have begun.

const (
	// mostPlanned bounds the plans of all queued jobs, by their cost.
	mostPlanned = 8_000_000
	// MostPlannedOfUser bounds the plans of one user, even if no other user has jobs.
	MostPlannedOfUser = 1_000_000
	// StepCost is the cost of a step beyond its nodes.
	StepCost = 16
	// ComparedCost is how many comparisons of a step with an earlier step of the same user cost as much as a node.
	ComparedCost = 32
)

// planned holds how much of a user's jobs is planned.
type planned struct{ cost, steps int64 }

// with adds a job: the nodes of all its steps, the steps, and comparing them with the user's earlier ones.
func (p planned) with(cand *slurm.Candidate) planned {
	before := p.steps
	add := func(profile planner.Profile) {
		for _, s := range profile {
			p.cost += int64(s.Nodes) + StepCost
		}
		p.cost += int64(len(profile)) * before / ComparedCost
		p.steps += int64(len(profile))
	}
	add(cand.Profile)
	for _, alternative := range cand.Molds {
		add(cand.Job.Moldable.Alternatives[alternative])
	}
	return p
}

// withinShares drops the jobs that exceed their user's share of planning from a list with the most urgent jobs
// first. The first job of each user stays. It takes O(steps).
func withinShares(c *state.Core, list []slurm.Candidate) []slurm.Candidate {
	of := map[uint32]planned{}
	for i := range list {
		if j := list[i].Job; j != nil {
			of[j.UID] = planned{}
		}
	}
	share := int64(MostPlannedOfUser)
	if n := int64(len(of)); n > 0 {
		share = min(share, mostPlanned/n)
	}
	kept := list[:0]
	for _, cand := range list {
		if j := cand.Job; j != nil {
			before := of[j.UID]
			now := before.with(&cand)
			if before.cost > 0 && now.cost > share {
				before.cost = share // none behind it, or short jobs would overtake a long one without end
				of[j.UID] = before
				dropPlan(c, j, fmt.Sprintf("is planned when earlier jobs of %s have begun: these have %d steps, and a user's share of planning is not enough for more", j.User, before.steps))
				continue
			}
			of[j.UID] = now
		}
		kept = append(kept, cand)
	}
	return kept
}
