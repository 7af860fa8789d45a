package stock

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/slurm"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// TierOf returns the highest or the lowest tier of a pending job's partitions. An evolving job must not
// overtake other jobs in any of them.
func TierOf(c *state.Core, r *slurmctl.Job, highest bool) int {
	tier, first := 0, true
	for name := range strings.SplitSeq(r.Partition, ",") {
		if t := c.Rules.Limits.Tier(name); first || (t > tier) == highest {
			tier, first = t, false
		}
	}
	return tier
}

// MostOfUser is how many waiting jobs of one user are considered, if there are too many.
const MostOfUser = 40

// urgency holds what orders candidates as Slurm does: their turn, then submission, tasks of an array by their numbers.
type urgency struct {
	turn       slurm.Turn
	since      time.Time
	submission slurmctl.JobID
	task       int64 // -1: it is none
	id         slurmctl.JobID
	at         int // in a list
}

func urgencyOf(cand *slurm.Candidate) urgency {
	u := urgency{cand.Turn, cand.Record.SubmitTime, cand.Record.ID, -1, cand.Record.ID, 0}
	if task, is := cand.Record.Task(); is {
		u.submission, u.task = cand.Record.ArrayJobID, int64(task)
	}
	return u
}

func (u urgency) compare(other urgency) int {
	return cmp.Or(other.turn.Compare(u.turn), u.since.Compare(other.since), cmp.Compare(u.submission, other.submission),
		cmp.Compare(u.task, other.task), cmp.Compare(u.id, other.id), cmp.Compare(u.at, other.at))
}

// MoreUrgent orders candidates as Slurm does.
func MoreUrgent(a, b slurm.Candidate) int { return urgencyOf(&a).compare(urgencyOf(&b)) }

// SortByUrgency puts the most urgent of many candidates first. These are large, so it sorts what orders them.
func SortByUrgency(list []slurm.Candidate) {
	order := make([]urgency, len(list))
	for i := range list {
		order[i] = urgencyOf(&list[i])
		order[i].at = i
	}
	slices.SortFunc(order, urgency.compare)
	sorted := make([]slurm.Candidate, len(list))
	for i, u := range order {
		sorted[i] = list[u.at]
	}
	copy(list, sorted)
}

// Fewest returns the length of the shortest choice, or of all nodes if there is no choice.
func Fewest(nodes []int, choices [][]int) int {
	least := len(nodes)
	for _, one := range choices { // each is a part of the nodes
		least = min(least, len(one))
	}
	return least
}

// ShareOut sorts a list before it is cut to `most` jobs: the most urgent first. If the list is longer, it puts the
// jobs of a user after the first MostOfUser behind all others. So one user's jobs cannot push out all other jobs.
func ShareOut(list []slurm.Candidate, most int) {
	SortByUrgency(list)
	if len(list) <= most {
		return
	}
	of, beyond := map[uint32]int{}, make([]slurm.Candidate, 0, len(list))
	first := list[:0]
	for _, cand := range list {
		if of[cand.Record.UID]++; of[cand.Record.UID] > MostOfUser {
			beyond = append(beyond, cand)
		} else {
			first = append(first, cand)
		}
	}
	copy(list[len(first):], beyond)
}

// UntilLook is how many seconds later than planned Slurm may start a stock job. It does so when it next looks
// at its queue, with a plan and holds that are a few seconds old by then. If the plan had the next job begin
// right where the stock job would end, that job's hold would keep the stock job from starting, and would move
// on without end.
const UntilLook = 30
