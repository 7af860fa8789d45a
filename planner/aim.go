package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
)

// Aim says what a waiting job wants of its own placement, beyond what its strategy wants for all jobs.
type Aim int

// The aims.
const (
	NoAim    Aim = iota
	AimStart     // the earliest start
	AimWaste     // the fewest node-seconds that it holds beyond its steps' durations
	AimNear      // the fewest leaf switches, summed up over its steps
)

// Aims returns the names of all aims.
func Aims() []string { return []string{"start", "waste", "near"} }

// String returns the name of an aim, or "".
func (a Aim) String() string {
	if names := Aims(); a > NoAim && int(a) <= len(names) {
		return names[a-1]
	}
	return ""
}

// Option returns the option of evosbatch that asks for an aim.
func (a Aim) Option() string { return "--prefer-" + a.String() }

// ParseAim reads the name of an aim.
func ParseAim(text string) (Aim, error) {
	if at := slices.Index(Aims(), text); at >= 0 {
		return Aim(at + 1), nil
	}
	return NoAim, fmt.Errorf("unknown aim %.20q: there are %s", text, strings.Join(Aims(), ", "))
}

// aimStarts bounds the starts that are tried for a job.
const aimStarts = 8

// Aim places the only job of a pool again, which waits and has no alternatives, by an aim. What else has the pool's nodes
// is Busy or Reserved, and stays where it is. The job starts at second `until` at the latest. If its cost is then lower than
// as planned, or it starts earlier at the same cost, Aim returns the new placement and true. It looks at about *work nodes
// and busy intervals, subtracts those that it looked at, and returns the best placement until then.
func (p Pool) Aim(aim Aim, planned Planned, until int64, work *int) (best Planned, found bool, err error) {
	best = planned
	p, end := p.before(planned, until)
	job, least := p.Jobs[0], p.AimCost(aim, planned)
	try := func(start int64, limit ExpandLimit) {
		one, look := job, p.Nodes+len(p.Busy)
		one.Submit, one.ExpandLimit = start, limit
		at, most := p, *work/look
		if at.Jobs = []PoolJob{one}; most < 1 {
			return
		}
		var got []Planned
		var rounds int
		got, rounds, err = at.planWithin(aiming{FitOptions{Early: aim == AimStart, Compact: aim != AimStart}}, most-1)
		*work -= look * (rounds + 1)
		if err != nil || !got[0].within(until, end) {
			return
		}
		if cost := p.AimCost(aim, got[0]); cost < least || cost == least && got[0].Start < best.Start {
			best, least, found = got[0], cost, true
		}
	}
	switch aim {
	case AimStart:
		try(job.Submit, job.ExpandLimit)
		return best, found, err
	case AimWaste:
		if least > 0 {
			try(job.Submit, 1) // without any waste
		}
	}
	for _, start := range p.aimStarts(until) {
		if err != nil || least <= p.leastCost(aim) && best.Start <= start {
			break
		}
		try(start, job.ExpandLimit)
	}
	return best, found, err
}

// within reports whether a job has a plan that starts and ends in time.
func (p Planned) within(start, end int64) bool {
	return p.Unfit == "" && p.Start <= start && p.End() <= end
}

// planWithin is planNear, with at most some rounds without reservations.
func (p Pool) planWithin(s Strategy, most int) (planned []Planned, rounds int, err error) {
	if len(p.Reserved) > 0 {
		return p.planNear(s)
	}
	if planned, rounds, err = p.plan(s, min(most, mapRounds)); err == nil {
		p.nearby(planned)
	}
	return planned, rounds, err
}

// before returns a pool without what begins at the returned second or later, and begins too late for its only job if
// that starts by second `until`.
func (p Pool) before(planned Planned, until int64) (_ Pool, end int64) {
	end = max(until, planned.Start)
	for _, step := range p.Jobs[0].Profile {
		end = exact.AddTime(end, p.Jobs[0].ExpandLimit.Stretch(step.Duration))
	}
	end = max(end, planned.End())
	busy := p.Busy
	p.Busy = make([]NodeBusy, 0, len(busy))
	for _, b := range busy {
		if b.Start < end && b.End > 0 {
			p.Busy = append(p.Busy, b)
		}
	}
	return p, end
}

// AimCost returns what an aim makes small: of a plan for the only job of a pool.
func (p Pool) AimCost(aim Aim, planned Planned) (cost int64) {
	switch {
	case aim == AimStart:
		return planned.Start
	case aim == AimWaste:
		return planned.Steps.Area() - p.Jobs[0].Profile.Area()
	case aim == AimNear && p.Switches != nil && p.Switches.valid(p.Nodes):
		for _, nodes := range planned.Nodes {
			cost += int64(p.Switches.leaves(nodes))
		}
	}
	return cost
}

// leastCost returns a cost that is certainly the lowest.
func (p Pool) leastCost(aim Aim) int64 {
	if aim == AimNear && p.Switches != nil {
		return int64(len(p.Jobs[0].Profile))
	}
	return 0
}

// aimStarts returns the first starts to try, until a second: the first possible one, and those at which nodes become free
// for the first step or for the largest.
func (p Pool) aimStarts(until int64) []int64 {
	job, peak := p.Jobs[0], int64(0)
	for _, step := range job.Profile {
		if step.Nodes == job.Profile.Peak() {
			break
		}
		peak += step.Duration
	}
	starts := []int64{job.Submit}
	for _, list := range [][]NodeBusy{p.Busy, p.Reserved} {
		for _, b := range list {
			for _, start := range [2]int64{b.End, b.End - peak} {
				if b.End == Forever || start <= job.Submit || start > min(until, exact.Horizon) {
					continue
				}
				if at, known := slices.BinarySearch(starts, start); !known && at < aimStarts {
					starts = slices.Insert(starts, at, start)
					starts = starts[:min(len(starts), aimStarts)]
				}
			}
		}
	}
	return starts
}

// AimDiffers returns the second after which Aim may find another placement although only time has passed, or Forever.
func (p Pool) AimDiffers(until int64) int64 {
	if starts := p.aimStarts(until); len(starts) > 1 {
		return starts[1]
	}
	return Forever
}

// aiming is a strategy that fits the jobs in its own way.
type aiming struct{ fit FitOptions }

// Name names the strategy in errors.
func (aiming) Name() string { return "aim" }

// ExpandLimit returns the limit of jobs without their own.
func (aiming) ExpandLimit() ExpandLimit { return 1 }

// Plan fits the jobs one by one.
func (a aiming) Plan(p Problem) (Schedule, error) {
	res, s := p.Timeline(), make(Schedule, len(p.Jobs))
	for i, job := range p.Jobs {
		o, ok := a.fit, false
		o.NotBefore, o.Limit = job.Submit, job.ExpandLimit
		if s[i], ok = Fit(res, p.Nodes, job.Profile, o); !ok {
			return nil, &FitError{Job: i, ID: job.ID, Reason: "it fits nowhere"}
		}
		res.AddPlacement(s[i])
	}
	return s, nil
}
