package paper

import (
	"cmp"
	"fmt"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/profile"
)

// A moldable job gets one of several profiles, once: its alternatives. Algorithm 1 needs no change:
// in list order, every job gets the alternative that it prefers among the fits over what the
// earlier jobs leave free. A job with a single profile has one alternative.

// Preference says which of its alternatives a moldable job prefers. Among equal ones, it prefers
// the one that completes first, then the one with the fewest node-seconds, then the first in the
// list.
type Preference int

// The preferences.
const (
	ByCompletion Preference = iota // the one that completes first
	ByWaste                        // the one that wastes the fewest node-seconds: allocated but not requested
	ByNodeHours                    // the one with the fewest allocated node-seconds
)

// Preferences returns the names of all preferences.
func Preferences() []string { return []string{"completion", "waste", "node-hours"} }

// String returns completion, waste, or node-hours.
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

// IsMoldable reports whether the job has a choice.
func (j Job) IsMoldable() bool { return len(j.Alternatives) > 0 }

// Choices returns how many profiles the job can choose from, at least 1.
func (j Job) Choices() int { return 1 + len(j.Alternatives) }

// Choice returns the profile with this number: 0 is Profile, then come the Alternatives.
func (j Job) Choice(choice int) profile.Profile {
	if choice == 0 {
		return j.Profile
	}
	return j.Alternatives[choice-1]
}

// Settled returns the job with only one of its profiles.
func (j Job) Settled(choice int) Job {
	j.Profile, j.Alternatives, j.By = j.Choice(choice), nil, ByCompletion
	return j
}

// LeastPeak returns the smallest peak of all alternatives.
func (j Job) LeastPeak() int {
	least := j.Profile.Peak()
	for _, p := range j.Alternatives {
		least = min(least, p.Peak())
	}
	return least
}

// Prefers reports whether the job prefers placement a to b.
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

// waste returns the node-seconds that are allocated but not requested.
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

// Settled returns the problem with only the profiles that a schedule has chosen.
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

// KnowsAlternatives reports whether a strategy plans moldable jobs: its method Moldable returns
// true. Other strategies must be asked about one profile per job.
func KnowsAlternatives(s Strategy) bool {
	m, ok := s.(interface{ Moldable() bool })
	return ok && m.Moldable()
}

// Moldable reports that every job gets the alternative that it prefers.
func (l list) Moldable() bool { return true }

// best fits every alternative of a moldable job and returns the one that it prefers.
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
	Fits bool // false if it fits nowhere
}

// Options returns what the alternatives of every moldable job in a plan would give, nil for other
// jobs. The job's own alternative is as planned. The others are fitted over the earlier jobs in the
// list as these are planned (later jobs would have to give way). limit is the expand limit of jobs
// without their own. It costs a Fit per alternative, and nothing if no job is moldable.
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
