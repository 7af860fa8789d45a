package core

import "fmt"

// Planning takes memory and time for every node of every step, and users choose both numbers. So
// each user has an equal share of what is planned at a time. The jobs that Slurm puts last wait
// without a plan until earlier ones of the same user have begun.

const (
	// mostPlanned bounds the plans of all queued jobs, by their cost.
	mostPlanned = 8_000_000
	// mostPlannedOfUser bounds the plans of one user, even if no other user has jobs.
	mostPlannedOfUser = 1_000_000
	// stepCost is the cost of a step beyond its nodes.
	stepCost = 16
)

// planCost returns what planning a job costs: the nodes of all steps, and the steps.
func planCost(cand *candidate) (cost int64) {
	for _, s := range cand.profile {
		cost += int64(s.Nodes) + stepCost
	}
	for _, alternative := range cand.molds {
		for _, s := range cand.job.Moldable.Alternatives[alternative] {
			cost += int64(s.Nodes) + stepCost
		}
	}
	return cost
}

// withinShares drops the jobs that exceed their user's share of planning from a list with the most urgent jobs
// first. The first job of each user stays. It takes O(steps).
func (c *Core) withinShares(list []candidate) []candidate {
	costs := map[uint32]int64{}
	for i := range list {
		if j := list[i].job; j != nil {
			costs[j.UID] = 0
		}
	}
	share := int64(mostPlannedOfUser)
	if n := int64(len(costs)); n > 0 {
		share = min(share, mostPlanned/n)
	}
	kept := list[:0]
	for _, cand := range list {
		if j := cand.job; j != nil {
			before, cost := costs[j.UID], planCost(&cand)
			if before > 0 && before+cost > share {
				costs[j.UID] = share // none behind it, or short jobs would overtake a long one without end
				c.dropPlan(j, fmt.Sprintf("is planned when earlier jobs of %s have begun: the nodes of all their steps add up to %d, and a user may have %d planned at a time", j.User, before, share))
				continue
			}
			costs[j.UID] = before + cost
		}
		kept = append(kept, cand)
	}
	return kept
}
