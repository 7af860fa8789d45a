package outcome

import (
	"cmp"
	"slices"
)

// Use is a period in which nodes are in use.
type Use struct {
	From, To int64
	Nodes    int
}

// Gap is a period in which nodes are idle, as long as can be.
type Gap struct {
	Length int64
	Nodes  int
	Last   bool // it ends with the run, so that nothing uses the nodes after it
}

// Uses returns when jobs had nodes, up to second end.
func (r *Run) Uses(end int64) (all []Use) {
	for i := range r.Jobs {
		j := r.Jobs[i]
		if j.End < 0 {
			j.End = end
		}
		j.spans(func(from, to int64, nodes int) { all = append(all, Use{from, to, nodes}) })
	}
	return all
}

// Gaps returns when nodes are idle from second 0 to end. Nodes are alike, so that the node that was used last is used next, and
// the other gaps are as long as can be.
func Gaps(nodes int, end int64, uses []Use) (all []Gap) {
	type change struct {
		at    int64
		nodes int
	}
	changes := []change{{end, nodes}}
	for _, u := range uses {
		changes = append(changes, change{u.From, u.Nodes}, change{u.To, -u.Nodes})
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.nodes, b.nodes)) // ends before starts, and the run's end last
	})
	idle := []change{{0, nodes}} // since when; those that were used last come last
	for _, c := range changes {
		if c.nodes < 0 {
			idle = append(idle, change{c.at, -c.nodes})
		}
		for c.nodes > 0 && len(idle) > 0 {
			last := &idle[len(idle)-1]
			n := min(c.nodes, last.nodes)
			if length := c.at - last.at; length > 0 {
				all = append(all, Gap{length, n, c.at == end})
			}
			c.nodes -= n
			if last.nodes -= n; last.nodes == 0 {
				idle = idle[:len(idle)-1]
			}
		}
	}
	return all
}
