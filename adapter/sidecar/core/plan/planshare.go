package plan

import (
	"fmt"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
)

// Planning takes memory and time for every node of every step, and users choose both numbers. So
// each user has an equal share of what is planned at a time. The jobs that Slurm puts last wait
// without a plan until earlier ones of the same user have begun.

const (
	// mostPlanned bounds the plans of all queued jobs, by their cost.
	mostPlanned = 8_000_000
	// MostPlannedOfUser bounds the plans of one user, even if no other user has jobs.
	MostPlannedOfUser = 1_000_000
	// StepCost is the cost of a step beyond its nodes.
	StepCost = 16
)

// planCost returns what planning a job costs: the nodes of all steps, and the steps.
func planCost(cand *slurm.Candidate) (cost int64) {
	for _, s := range cand.Profile {
		cost += int64(s.Nodes) + StepCost
	}
	for _, alternative := range cand.Molds {
		for _, s := range cand.Job.Moldable.Alternatives[alternative] {
			cost += int64(s.Nodes) + StepCost
		}
	}
	return cost
}

// withinShares drops the jobs that exceed their user's share of planning from a list with the most urgent jobs
// first. The first job of each user stays. It takes O(steps).
func withinShares(c *state.Core, list []slurm.Candidate) []slurm.Candidate {
	costs := map[uint32]int64{}
	for i := range list {
		if j := list[i].Job; j != nil {
			costs[j.UID] = 0
		}
	}
	share := int64(MostPlannedOfUser)
	if n := int64(len(costs)); n > 0 {
		share = min(share, mostPlanned/n)
	}
	kept := list[:0]
	for _, cand := range list {
		if j := cand.Job; j != nil {
			before, cost := costs[j.UID], planCost(&cand)
			if before > 0 && before+cost > share {
				costs[j.UID] = share // none behind it, or short jobs would overtake a long one without end
				dropPlan(c, j, fmt.Sprintf("is planned when earlier jobs of %s have begun: the nodes of all their steps add up to %d, and a user may have %d planned at a time", j.User, before, share))
				continue
			}
			costs[j.UID] = before + cost
		}
		kept = append(kept, cand)
	}
	return kept
}
