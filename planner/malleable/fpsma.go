package malleable

import "slices"

// FPSMA favours previously started malleable applications (V-C.1). It grows the job that started
// earliest as far as that job accepts, then the next. It shrinks the job that started latest first.
// O(n log n) for n jobs.
type FPSMA struct{}

// Name implements Policy.
func (FPSMA) Name() string { return "fpsma" }

// Apply implements Policy.
func (FPSMA) Apply(jobs []Job, r Request, ask Ask) []Change {
	switch r.Kind {
	case Grow:
		return fpsmaGrow(jobs, r, ask)
	case Shrink:
		return fpsmaShrink(jobs, r, ask)
	}
	return nil
}

// fpsmaGrow is FPSMA_GROW of figure 4; the numbers are its line numbers.
func fpsmaGrow(jobs []Job, r Request, ask Ask) (changes []Change) {
	growValue := r.Nodes
	list := asked(jobs, r)   // 1
	for _, i := range list { // 2
		if growValue == 0 { // 7, 8; with nothing to give, no job is asked
			break
		}
		accepted := send(jobs, i, Request{Grow, growValue, r.Mandatory}, ask, &changes) // 3, 4, 5
		growValue -= accepted                                                           // 6
	}
	return changes
}

// fpsmaShrink is FPSMA_SHRINK of figure 4. It may reclaim more than requested.
func fpsmaShrink(jobs []Job, r Request, ask Ask) (changes []Change) {
	shrinkValue := r.Nodes
	list := asked(jobs, r)
	slices.Reverse(list)     // 1
	for _, i := range list { // 2
		if shrinkValue <= 0 { // 7, 8
			break
		}
		accepted := send(jobs, i, Request{Shrink, shrinkValue, r.Mandatory}, ask, &changes) // 3, 4, 5
		shrinkValue -= accepted                                                             // 6
	}
	return changes
}
