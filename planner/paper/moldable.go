package paper

import (
	"cmp"
	"fmt"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// A moldable job is given one of several profiles, once: its alternatives. Algorithm 1
// takes them as they are: in list order every job gets, of the fits of its alternatives
// over what the jobs before it leave free, the one that it prefers. A job with a single
// profile is one with one alternative.

// Preference says which of its alternatives a moldable job prefers. Of those that are
// equal it is the one that completes first, then the one with the fewest node-seconds,
// then the first in the list.
type Preference int

// The preferences.
const (
	ByCompletion Preference = iota // that completes first
	ByWaste                        // that wastes the fewest node-seconds: allocated and not asked for
	ByNodeHours                    // that is allocated the fewest node-seconds
)

// Preferences are the names of all preferences.
func Preferences() []string { return []string{"completion", "waste", "node-hours"} }

// String is completion, waste or node-hours.
func (b Preference) String() string {
	if names := Preferences(); b >= 0 && int(b) < len(names) {
		return names[b]
	}
	return fmt.Sprintf("Preference(%d)", int(b))
}

// ParsePreference reads the name of a preference.
func ParsePreference(text string) (Preference, error) {
	for i, name := range Preferences() {
		if text == name {
			return Preference(i), nil
		}
	}
	return 0, fmt.Errorf("%.100q is none of completion, waste, node-hours", text)
}

// MaxAlternatives bounds the profiles of a moldable job.
const MaxAlternatives = 100

// IsMoldable reports whether there is something to choose.
func (j Job) IsMoldable() bool { return len(j.Alternatives) > 0 }

// Choices is how many profiles the job has to choose from, at least 1.
func (j Job) Choices() int { return 1 + len(j.Alternatives) }

// Choice is the profile that a placement with this Choice is one of: 0 is Profile, then
// come the Alternatives.
func (j Job) Choice(choice int) profile.Profile {
	if choice == 0 {
		return j.Profile
	}
	return j.Alternatives[choice-1]
}

// Settled is the job with one of its profiles alone.
func (j Job) Settled(choice int) Job {
	j.Profile, j.Alternatives, j.By = j.Choice(choice), nil, ByCompletion
	return j
}

// LeastPeak is the peak of the alternative that has the smallest.
func (j Job) LeastPeak() int {
	least := j.Profile.Peak()
	for _, p := range j.Alternatives {
		least = min(least, p.Peak())
	}
	return least
}

// Prefers reports whether a placement is better for the job than another.
func (j Job) Prefers(a, b profile.Placement) bool {
	held, other := a.Steps.WideArea(), b.Steps.WideArea()
	by := 0
	switch j.By {
	case ByWaste:
		by = j.waste(a).Compare(j.waste(b))
	case ByNodeHours:
		by = held.Compare(other)
	}
	return cmp.Or(by, cmp.Compare(a.End(), b.End()), held.Compare(other), cmp.Compare(a.Choice, b.Choice)) < 0
}

// waste is the node-seconds that are allocated and not asked for.
func (j Job) waste(p profile.Placement) exact.Wide {
	w := p.Steps.WideArea()
	w.Minus(j.Choice(p.Choice).WideArea())
	return w
}

// IsMoldable reports whether any job of the problem is moldable.
func (p Problem) IsMoldable() bool {
	for i := range p.Jobs {
		if p.Jobs[i].IsMoldable() {
			return true
		}
	}
	return false
}

// Settled is the problem with the profiles alone that a schedule has chosen.
func (p Problem) Settled(s Schedule) Problem {
	if !p.IsMoldable() {
		return p
	}
	jobs := make([]Job, len(p.Jobs))
	for i, j := range p.Jobs {
		jobs[i] = j.Settled(s[i].Choice)
	}
	p.Jobs = jobs
	return p
}

// KnowsAlternatives reports whether a strategy plans moldable jobs: it has a method
// Moldable that says so. Others are to be asked about one profile of each job.
func KnowsAlternatives(s Strategy) bool {
	m, ok := s.(interface{ Moldable() bool })
	return ok && m.Moldable()
}

// Moldable tells that every job gets the alternative that it prefers.
func (l list) Moldable() bool { return true }

// best fits every alternative of a moldable job and gives the one that it prefers.
func (f *fitter) best(res occupancy, capacity int, j Job, o FitOptions) (best profile.Placement, ok bool) {
	for k := range j.Choices() {
		p := j.Choice(k)
		if !f.fit(res, capacity, p, o) {
			continue
		}
		placed := f.placement(p)
		placed.Choice = k
		if !ok || j.Prefers(placed, best) {
			best, ok = placed, true
		}
	}
	return best, ok
}

// An Option is what one alternative of a moldable job would give.
type Option struct {
	profile.Placement
	Fits bool // else it fits nowhere
}

// Options are what the alternatives of every moldable job of a plan would give, nil for
// other jobs: its own is as planned, the others are fitted over the jobs before it in the
// list as these are planned (those behind it would have to give way). limit is the expand
// limit of jobs that have none of their own. It costs a Fit for every alternative, and
// nothing where no job is moldable.
func Options(p Problem, s Schedule, limit profile.ExpandLimit) [][]Option {
	all := make([][]Option, len(p.Jobs))
	if !p.IsMoldable() {
		return all
	}
	last := len(p.Jobs) - 1
	for !p.Jobs[last].IsMoldable() {
		last--
	}
	res := p.Timeline()
	f := fitter{until: exact.Horizon + 1}
	l := list{limit: limit, compact: true}
	for i, j := range p.Jobs[:last+1] {
		for k := 0; j.IsMoldable() && k < j.Choices(); k++ {
			o := Option{Placement: s[i], Fits: true}
			if k != s[i].Choice {
				if o.Placement, o.Fits = (profile.Placement{}), f.fit(res, p.Nodes, j.Choice(k), l.options(j)); o.Fits {
					o.Placement = f.placement(j.Choice(k))
				}
				o.Choice = k
			}
			all[i] = append(all[i], o)
		}
		res.AddPlacement(s[i])
	}
	return all
}
