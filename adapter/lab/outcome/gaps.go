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

// Filled says how much of the idle time best-effort tasks of one length could use.
type Filled struct {
	Task  int64   `json:"task"`  // seconds that a task runs on a node
	Tasks int64   `json:"tasks"` // that fit
	Part  float64 `json:"part"`  // percent of the idle node-seconds
	Held  float64 `json:"held"`  // percent of the node-seconds that holds kept idle
}

// Fill returns how many tasks of each length fit, whole, between the jobs of a run up to second end, and on nodes while holds kept them
// idle. It is a bound for best-effort work that knows all gaps, and is never interrupted.
func (r *Run) Fill(end int64, held []Use, lengths []int64) (all []Filled) {
	idle, kept := Gaps(r.Nodes, end, r.Uses(end)), Gaps(r.Nodes, end, others(r.Nodes, end, held))
	for _, length := range lengths {
		f := Filled{Task: length}
		f.Tasks, f.Part = fill(idle, length)
		_, f.Held = fill(kept, length)
		all = append(all, f)
	}
	return all
}

// fill returns how many tasks fit into gaps, and in how many percent of them.
func fill(gaps []Gap, length int64) (tasks int64, part float64) {
	whole := 0.
	for _, g := range gaps {
		whole += float64(g.Length) * float64(g.Nodes)
		tasks += g.Length / length * int64(g.Nodes)
	}
	return tasks, 100 * float64(tasks) * float64(length) / max(whole, 1)
}

// others returns when all other nodes are in use, for periods in order of time.
func others(nodes int, end int64, periods []Use) (all []Use) {
	last := int64(0)
	for _, p := range append(slices.Clip(periods), Use{From: end, To: end}) {
		all = append(all, Use{last, p.From, nodes}, Use{p.From, p.To, nodes - p.Nodes})
		last = p.To
	}
	return all
}
