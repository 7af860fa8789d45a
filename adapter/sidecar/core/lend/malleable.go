package lend

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/adopt"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/refit"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/state"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// most returns how many nodes the job may have in its current step.
func most(j *state.Job) int { return adopt.MostOf(j, j.Step) }

// wants returns the planned starts and growths on every node, including those of jobs that borrow the node.
func wants(c *state.Core) map[string][]state.Want {
	all := map[string][]state.Want{}
	for _, j := range c.Active {
		if j.Kept != nil {
			continue
		}
		has := msg.SetOf(refit.Own(j))
		coming := j.Plan[min(max(j.Step, 0), len(j.Plan)):]
		if !j.BestEffort() && refit.Lacks(j) {
			coming = j.Coming()
		}
		for _, step := range coming {
			for _, name := range step.Nodes {
				if !has[name] {
					all[name] = append(all[name], state.Want{j, step.Start})
				}
			}
		}
	}
	return all
}

// wantedAt returns when the first other job gets the node, or never.
func wantedAt(all []state.Want, but *state.Job) int64 {
	first := never
	for _, w := range all {
		if w.By != but {
			first = min(first, w.At)
		}
	}
	return first
}

const never = int64(1) << 60

// boundAt returns when a lent node is free again if the job leaves it as promised, or never.
func boundAt(c *state.Core, j *state.Job, name string) int64 {
	if back := refit.Bound(j, name); back > 0 {
		return refit.Returned(c, back)
	}
	return never
}

// CheckLent checks that malleable jobs are within their bounds, and that each has at most one open offer.
func CheckLent(c *state.Core, bad func(j *state.Job, format string, args ...any)) {
	for _, j := range c.Active {
		if !adopt.IsMalleable(j) {
			if refit.OfferAt(j) != nil {
				bad(j, "is not malleable, and there is an offer")
			}
			continue
		}
		open := 0
		for _, o := range j.Offers {
			if one := refit.Offer(o); !one.Over() {
				open++
			}
		}
		if open > 1 {
			bad(j, "%d offers are open", open)
		}
		o := refit.OfferAt(j)
		if o != nil && o.Grows() && len(o.Wanted())+o.Had > most(j) && j.State == row.Running {
			bad(j, "is offered %d nodes beside %d, and may have %d", len(o.Wanted()), o.Had, most(j))
		}
	}
}

// OverMost returns the nodes that a job has beyond its maximum, first those that other jobs need.
func OverMost(c *state.Core, j *state.Job) []string {
	if over := len(j.Nodes()) - most(j); over > 0 && j.Step > 0 {
		first := goFirst(c, j, wants(c))
		return first[:min(over, len(first))]
	}
	return nil
}

// goFirst returns the nodes that a job has beyond its own, in the order in which it would give them back:
// first those that other jobs get soonest, or that it promised to give back soonest, then those of companions, newest first.
func goFirst(c *state.Core, j *state.Job, wants map[string][]state.Want) []string {
	order := map[string]int{}
	for i, name := range slices.Concat(j.NewestFirst(), reversed(j.Record.NodeList)) {
		if _, seen := order[name]; !seen {
			order[name] = i
		}
	}
	more := msg.Without(j.Nodes(), refit.Own(j))
	goes := func(name string) int64 { return min(wantedAt(wants[name], j), boundAt(c, j, name)) }
	slices.SortStableFunc(more, func(a, b string) int {
		return cmp.Or(cmp.Compare(goes(a), goes(b)), cmp.Compare(len(wants[a]), len(wants[b])), cmp.Compare(order[a], order[b]))
	})
	return more
}

func reversed(names []string) []string {
	all := slices.Clone(names)
	slices.Reverse(all)
	return all
}

// KeepsLent returns the nodes beyond those of the next step that a job keeps at the end of a step, as far as
// the next step's bounds and sizes allow, and if no other job needs them.
func KeepsLent(c *state.Core, j *state.Job, next *msg.PlannedStep, surplus []string) []string {
	if !adopt.IsMalleable(j) {
		return nil
	}
	least := len(next.Nodes)
	if o := refit.OfferAt(j); o != nil && o.Demands() {
		surplus = msg.Without(surplus, o.Wanted())
	}
	soon := c.Now.Add(refit.Recall(c, j) + refit.GraceOf(c, j)).Unix()
	wants, leaving := wants(c), msg.SetOf(j.Release)
	surplus = slices.DeleteFunc(slices.Clone(surplus), func(name string) bool {
		return leaving[name] || c.Pressing[name] || min(wantedAt(wants[name], j), boundAt(c, j, name)) <= soon
	})
	if !j.Mode.ResizesInPart { // companions that came beyond the plan
		var parts []string
		held := slices.Clone(j.Held)
		slices.Reverse(held)
		slices.SortStableFunc(held, func(a, b msg.Part) int { // first those that have nodes of the next step: they go as a whole
			return cmp.Compare(min(len(msg.Common(b.Nodes, next.Nodes)), 1), min(len(msg.Common(a.Nodes, next.Nodes)), 1))
		})
		for _, p := range held {
			more := msg.Without(p.Nodes, next.Nodes) // the next step may have some of these nodes
			if p.Step == refit.LentStep && len(msg.Common(more, surplus)) == len(more) && len(more)+len(parts)+least <= adopt.MostOf(j, j.Step+1) {
				parts = append(parts, more...)
			}
		}
		if !j.Malleable.Sizes.Has(least + len(parts)) {
			return nil
		}
		return parts
	}
	most := j.Malleable.Sizes.Floor(min(adopt.MostOf(j, j.Step+1), least+len(surplus)))
	if most <= least {
		return nil
	}
	slices.SortStableFunc(surplus, func(a, b string) int {
		return cmp.Compare(wantedAt(wants[b], j), wantedAt(wants[a], j))
	})
	return surplus[:most-least]
}

// stillResizable returns why the size of a job cannot change beyond its plan, or "" if it can.
func stillResizable(c *state.Core, j *state.Job) string {
	switch {
	case !j.Mode.ResizesBesidePlan:
		return "a running job cannot be resized here, or only once"
	case j.Claim > 0:
		return "it has a claim, and grows on demand"
	}
	return ""
}

// LentText returns the nodes that a job has beyond its plan, for evosqueue.
func LentText(j *state.Job) string { return slurmctl.CompressNodes(refit.Lent(j)) }
