package simulate

import (
	"slices"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// answered applies the answer to a change.
func (a *App) answered(c api.Change) {
	if !c.Accepted {
		a.Refusals++
		return
	}
	if p, err := planner.ParseProfile(c.Profile); err == nil && !c.DryRun {
		a.Before = append(a.Before, request.Request{Profile: a.Profile, Malleable: a.Malleable})
		if c.Step < max(a.step(), 1) { // requeued: its old nodes are gone, even if it has not heard of that
			a.startsOver()
		}
		if c.Step == 0 {
			a.Over = 0
		}
		for i := range min(a.step(), len(a.Profile), len(p)) { // a sidecar that lost its database knows no past steps
			if !a.beganAnew(i + 1) {
				p[i].Nodes = a.Profile[i].Nodes
			}
		}
		a.Profile, a.Alternatives = p, nil
		a.rebound(c.Bounds)
	}
}

// beganAnew reports whether a step has begun that the known profile does not have: by a change
// whose answer comes after that of next.
func (a *App) beganAnew(step int) bool {
	return slices.ContainsFunc(a.Steps[a.First:], func(b Begun) bool { return b.Step == step && !a.within(step, b.Nodes) })
}

// rebound gives a malleable application the bounds for another profile; without bounds, it is no
// longer malleable.
func (a *App) rebound(bounds string) {
	if a.Malleable == nil {
		return
	}
	m := *a.Malleable
	var r request.Request
	if err := r.Set("profile", bounds); bounds != "" && err == nil && r.Malleable != nil {
		m.Max = r.Malleable.Max
	} else {
		m.Max, m.Sizes = request.Sizes(a.Profile), malleable.Any // past steps may have any size, because they cannot be lent anything
	}
	m.Max = slices.Clone(m.Max)
	for i := range min(a.step(), len(m.Max), len(a.Malleable.Max)) { // past steps stay as they were
		m.Max[i] = max(m.Max[i], a.Malleable.Max[i])
	}
	a.Malleable = &m
}

// adopted learns what is known about a job that was adopted again.
func (a *App) adopted(p planner.Profile, changes []row.Change, crashed bool) {
	if len(changes) > 0 {
		a.Over = max(a.Over, changes[0].Step-1)
	}
	is := func(asked planner.Profile) bool {
		return len(p) == len(asked) && slices.Equal(p[min(a.Over, len(p)):], asked[min(a.Over, len(p)):])
	}
	if !crashed || is(a.Profile) {
		return
	}
	for i, r := range slices.Backward(a.Before) {
		if is(r.Profile) { // what it asked for since is forgotten
			a.Profile, a.Malleable, a.Before = r.Profile, r.Malleable, a.Before[:i]
			return
		}
	}
}
