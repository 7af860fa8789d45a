package malleable

import "slices"

// EGS implements equi-grow and shrink (V-C.2): it offers all jobs the same number of nodes, or asks
// all for the same. The remainder goes, one node each, to the jobs that started earliest, or comes
// from those that started latest. What a job does not accept is left for the next time. O(n log n)
// for n jobs.
type EGS struct{}

// Name implements Policy.
func (EGS) Name() string { return "egs" }

// Apply implements Policy.
func (EGS) Apply(jobs []Job, r Request, ask Ask) []Change {
	switch r.Kind {
	case Grow:
		return equiGrow(jobs, r, ask)
	case Shrink:
		return equiShrink(jobs, r, ask)
	}
	return nil
}

// equiGrow is EQUI_GROW of figure 5; the numbers are its line numbers.
func equiGrow(jobs []Job, r Request, ask Ask) (changes []Change) {
	list := asked(jobs, r) // 1
	if len(list) == 0 {
		return nil
	}
	jobGrowValue := r.Nodes / len(list)  // 2
	growRemainder := r.Nodes % len(list) // 3
	for i, job := range list {           // 4
		bonus := 0
		if i < growRemainder { // 5
			bonus = 1
		}
		send(jobs, job, Request{Grow, jobGrowValue + bonus, r.Mandatory}, ask, &changes) // 6, 7, 8
	}
	return changes
}

// equiShrink is EQUI_SHRINK of figure 5; see doc.go for line 5.
func equiShrink(jobs []Job, r Request, ask Ask) (changes []Change) {
	list := asked(jobs, r)
	slices.Reverse(list) // 1
	if len(list) == 0 {
		return nil
	}
	jobShrinkValue := r.Nodes / len(list)  // 2
	shrinkRemainder := r.Nodes % len(list) // 3
	for i, job := range list {             // 4
		malus := 0
		if i < shrinkRemainder { // 5
			malus = 1
		}
		send(jobs, job, Request{Shrink, jobShrinkValue + malus, r.Mandatory}, ask, &changes) // 6, 7, 8, 9
	}
	return changes
}
