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

// urgency holds what orders jobs as Slurm does: their turn, then submission, tasks of an array by their numbers.
type urgency struct {
	turn       slurm.Turn
	since      time.Time
	submission slurmctl.JobID
	task       int64 // -1: it is none
	id         slurmctl.JobID
	at         int // in a list
}

func urgencyOf(turn slurm.Turn, r *slurmctl.Job) urgency {
	u := urgency{turn, r.SubmitTime, r.ID, -1, r.ID, 0}
	if task, is := r.Task(); is {
		u.submission, u.task = r.ArrayJobID, int64(task)
	}
	return u
}

func (u urgency) compare(other urgency) int {
	return cmp.Or(other.turn.Compare(u.turn), u.since.Compare(other.since), cmp.Compare(u.submission, other.submission),
		cmp.Compare(u.task, other.task), cmp.Compare(u.id, other.id), cmp.Compare(u.at, other.at))
}

// MoreUrgent orders candidates as Slurm does.
func MoreUrgent(a, b slurm.Candidate) int {
	return urgencyOf(a.Turn, a.Record).compare(urgencyOf(b.Turn, b.Record))
}

// fewest returns the length of the shortest choice, or of all nodes if there is no choice.
func fewest(nodes []int, choices [][]int) int {
	least := len(nodes)
	for _, one := range choices { // each is a part of the nodes
		least = min(least, len(one))
	}
	return least
}

// ShareOut sorts a list before it is cut to `most` jobs: the most urgent first. If the list is longer, it puts the
// jobs of a user after the first MostOfUser behind all others. So one user's jobs cannot push out all other jobs.
func ShareOut(list []slurm.Candidate, most int) {
	sorted := make([]slurm.Candidate, 0, len(list))
	for _, i := range shareOut(len(list), most, func(i int) (slurm.Turn, *slurmctl.Job) { return list[i].Turn, list[i].Record }) {
		sorted = append(sorted, list[i])
	}
	copy(list, sorted)
}

// shareOut returns the order of n jobs as ShareOut does. A site has many, so it sorts only what orders them.
func shareOut(n, most int, job func(i int) (slurm.Turn, *slurmctl.Job)) []int {
	urgencies := make([]urgency, n)
	for i := range urgencies {
		urgencies[i] = urgencyOf(job(i))
		urgencies[i].at = i
	}
	slices.SortFunc(urgencies, urgency.compare)
	of, order, beyond := map[uint32]int{}, make([]int, 0, n), []int(nil)
	for _, u := range urgencies {
		_, r := job(u.at)
		if of[r.UID]++; n > most && of[r.UID] > MostOfUser {
			beyond = append(beyond, u.at)
		} else {
			order = append(order, u.at)
		}
	}
	return append(order, beyond...)
}

// UntilLook is how many seconds later than planned Slurm may start a stock job. It does so when it next looks
// at its queue, with a plan and holds that are a few seconds old by then. If the plan had the next job begin
// right where the stock job would end, that job's hold would keep the stock job from starting, and would move
// on without end.
const UntilLook = 30
