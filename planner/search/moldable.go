package search

import (
	"slices"

	"github.com/evoslurm/evoslurm/planner/paper"
)

// shapesOf returns the shapes of a moldable job's alternatives, without steps for those that
// it does not get; nil where there is nothing to choose.
func shapesOf(p paper.Problem, j paper.Job) []shape {
	if !j.IsMoldable() {
		return nil
	}
	may := func(k int) bool { return j.Choice(k).Peak() <= p.Nodes }
	if j.By == paper.ByNodeHours {
		least := -1
		for k := range j.Choices() {
			if may(k) && (least < 0 || j.Choice(k).WideArea().Less(j.Choice(least).WideArea())) {
				least = k
			}
		}
		fits := may
		may = func(k int) bool { return fits(k) && j.Choice(k).WideArea() == j.Choice(least).WideArea() }
	}
	all, several := make([]shape, j.Choices()), 0
	for k := range all {
		if may(k) {
			all[k] = newShape(j.Settled(k))
			several++
		}
	}
	if several < 2 {
		return nil
	}
	return all
}

// another returns an alternative of a moldable job by chance, other than a present one.
func another(all []shape, present int, random *rng) int {
	for k := (present + 1 + random.below(len(all)-1)) % len(all); ; k = (k + 1) % len(all) {
		if k != present && len(all[k].steps) > 0 {
			return k
		}
	}
}

// pick has the best plan so far be one with these alternatives.
func (x *searcher) pick(picks []int) {
	if len(x.moldable) == 0 || slices.Equal(x.picks, picks) {
		return
	}
	copy(x.picks, picks)
	area := 0.0
	for i := range x.shapes {
		if x.all[i] != nil {
			x.shapes[i] = x.all[i][picks[i]]
		}
		area += x.shapes[i].area
	}
	x.forward.area = area // it has these shapes as well
	if x.backward != nil {
		x.backward.area = area
		for _, i := range x.moldable {
			x.backward.shapes[i] = x.shapes[i].mirrored()
		}
	}
}
