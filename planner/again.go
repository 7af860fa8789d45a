package planner

import "slices"

// Last holds how a pool was planned, as a start for the next plan.
type Last struct {
	Strategy string // the strategy's name
	Origin   int64
	Pool     Pool
	Planned  []Planned
	Found    [][]int // per job, what it preferred when that was last found among its planned nodes

	// Drifts reports that the plan is not kept, and that a new one may differ in every second.
	Drifts bool
}

// PlanAgain is Plan, but avoids planning if only time has passed since last (nil if unknown) and no
// job was due to start meanwhile. The plans then stay, and start every job when a new plan would.
// Second 0 of the pool is second origin on the clock shared with last. It then takes O(pool).
//
// A job that prefers the nodes on which last has put it stays there. In a new plan, jobs placed
// earlier would avoid the nodes that it prefers, and might drive it off: two choices of nodes would
// alternate forever. For the same reason, PlanAgain keeps a plan that was repeated because of node
// windows: which windows are in the way depends on where jobs prefer to be, and on the time.
//
// This holds for strategies whose method Steady returns true, and for jobs that are not expanded:
// the first second at which a job fits stays the same, and a job that fits nowhere does not fit
// later, as long as none waits for licences. Other pools are planned each time. Their plans stay the same too, unless they were repeated: these drift.
//
// Others' jobs may also be late without a new plan, by a tenth of the time until the first of our
// jobs starts. They then count as started on time.
func (p Pool) PlanAgain(s Strategy, origin int64, last *Last) ([]Planned, *Last, error) {
	steady := IsSteady(s) && len(p.Reserved) == 0 && !p.needsLicenses() && !slices.ContainsFunc(p.Jobs, func(j PoolJob) bool {
		return j.Fixed || j.ExpandLimit > 1 || j.ExpandLimit == 0 && ExpandLimitOf(s) > 1
	})
	if steady && last != nil && last.Strategy == s.Name() {
		if by := origin - last.Origin; by >= 0 && last.holds(p, by) {
			planned := slices.Clone(last.Planned)
			for i := range planned {
				if planned[i].Unfit != "" {
					continue
				}
				planned[i].Start -= by
				planned[i].Options = slices.Clone(planned[i].Options)
				for k, o := range planned[i].Options {
					if o.Fits {
						planned[i].Options[k].Start -= by
					}
				}
			}
			return planned, last, nil
		}
	}
	if !steady {
		planned, rounds, err := p.planAnew(s)
		if err != nil || rounds == 0 {
			return planned, nil, err
		}
		return planned, &Last{Origin: origin, Drifts: true}, nil
	}
	planned, _, err := p.together(s, Pool.planSteady)
	if err != nil {
		return nil, nil, err
	}
	return planned, &Last{Strategy: s.Name(), Origin: origin, Pool: p, Planned: slices.Clone(planned)}, nil
}

// planSteady is planNear without reservations, also for moldable jobs.
func (p Pool) planSteady(s Strategy) ([]Planned, int, error) {
	planned, rounds, err := p.plan(s, mapRounds)
	if err == nil {
		p.nearby(planned)
	}
	return planned, rounds, err
}

// IsSteady reports whether a strategy's plans stay as they are while nothing but time goes
// by.
func IsSteady(s Strategy) bool {
	o, ok := s.(interface{ Steady() bool })
	return ok && o.Steady()
}

// holds reports whether last's plan is valid for the pool `by` seconds later.
func (l *Last) holds(p Pool, by int64) bool {
	if p.Nodes != l.Pool.Nodes || !p.Switches.equal(l.Pool.Switches) || len(p.Jobs) != len(l.Pool.Jobs) || !sameBusy(p.Busy, l.Pool.Busy, by) {
		return false
	}
	soonest := l.soonest()
	for i := range p.Jobs {
		is, was := &p.Jobs[i], &l.Pool.Jobs[i]
		late := is.Submit - later(l.Planned[i].first(), by)
		if is.Submit < was.Submit-by || !is.sameNeeds(was) || !is.waitsAs(was, by) || !slices.Equal(is.Prefer, was.Prefer) && !l.has(i, is.Prefer) || late > 0 && !(is.Others && late <= (soonest-by)/patience) {
			return false
		}
	}
	return true
}

// has reports whether all these nodes are planned for a job. It remembers the list, which is
// usually the same the next time.
func (l *Last) has(i int, nodes []int) bool {
	if len(nodes) == 0 {
		return true
	}
	if l.Found == nil {
		l.Found = make([][]int, len(l.Planned))
	}
	if f := l.Found[i]; len(f) == len(nodes) && &f[0] == &nodes[0] {
		return true
	}
	if !l.Planned[i].has(nodes) {
		return false
	}
	l.Found[i] = nodes
	return true
}

// has reports whether all these nodes belong to the plan.
func (p *Planned) has(nodes []int) bool {
	return !slices.ContainsFunc(nodes, func(n int) bool {
		return !slices.ContainsFunc(p.Nodes, func(step []int) bool {
			_, found := slices.BinarySearch(step, n)
			return found
		})
	})
}

// patience bounds how late others' jobs may be: the time until our first start divided by it.
const patience = 10

// soonest returns when the first of our jobs starts.
func (l *Last) soonest() int64 {
	first := Forever
	for i := range l.Planned {
		if !l.Pool.Jobs[i].Others && l.Planned[i].Unfit == "" {
			first = min(first, l.Planned[i].Start)
		}
	}
	return first
}

// first returns the first second at which any alternative of the job could start, or Forever.
func (p *Planned) first() int64 {
	if p.Unfit != "" {
		return Forever
	}
	first := p.Start
	for _, o := range p.Options {
		if o.Fits {
			first = min(first, o.Start)
		}
	}
	return first
}

// Until returns the first second, on origin's clock, at which another's job that may start at any
// time is too late, or a job of ours could have started as another alternative, so that the pool needs
// a new plan. It returns Forever if neither will be, and the plan's origin if the plan drifts.
func (l *Last) Until() int64 {
	if l.Drifts {
		return l.Origin
	}
	until, soonest := Forever, l.soonest()
	for i := range l.Planned {
		start, first := l.Planned[i].Start, l.Planned[i].first()
		if !l.Pool.Jobs[i].Others && first < start {
			until = min(until, l.Origin+first+1)
		}
		if !l.Pool.Jobs[i].Others || l.Planned[i].Unfit != "" {
			continue
		}
		// late ≤ (soonest-by)/patience holds while late = by-start does
		if by := (soonest + patience*start) / (patience + 1); soonest < Forever/patience {
			until = min(until, l.Origin+max(by, start)+1)
		}
	}
	return until
}

// sameNeeds reports whether two waiting jobs differ only in when they may start and where they
// prefer to be.
func (j *PoolJob) sameNeeds(k *PoolJob) bool {
	return j.Others == k.Others && j.Driver == k.Driver && j.Bring == k.Bring && j.ExpandLimit == k.ExpandLimit && slices.Equal(j.Profile, k.Profile) &&
		slices.Equal(j.Release, k.Release) && slices.Equal(j.Limits, k.Limits) && slices.Equal(j.MaxDuration, k.MaxDuration) &&
		j.By == k.By && slices.EqualFunc(j.Alternatives, k.Alternatives, func(a, b Profile) bool { return slices.Equal(a, b) }) &&
		slices.EqualFunc(j.AlternativeLimits, k.AlternativeLimits, func(a, b []int64) bool { return slices.Equal(a, b) })
}

// waitsAs reports whether a job waits for few switches until the same time as `by` seconds ago.
func (j *PoolJob) waitsAs(k *PoolJob, by int64) bool {
	return j.Leaves == k.Leaves && (j.Leaves == 0 || j.Patience == k.Patience || j.Patience == k.Patience-by)
}

// sameBusy reports whether every node has the same future use as `by` seconds ago.
func sameBusy(is, was []NodeBusy, by int64) bool {
	ahead := func(list []NodeBusy, by int64) (NodeBusy, []NodeBusy) {
		for len(list) > 0 {
			b := list[0]
			list = list[1:]
			if b.Start, b.End = max(b.Start-by, 0), later(b.End, by); b.Start < b.End {
				return b, list
			}
		}
		return NodeBusy{}, nil
	}
	for len(is) > 0 || len(was) > 0 {
		var a, b NodeBusy
		a, is = ahead(is, 0)
		if b, was = ahead(was, by); a != b {
			return false
		}
	}
	return true
}

// later returns a second, shifted by some seconds.
func later(s, by int64) int64 {
	if s == Forever {
		return Forever
	}
	return s - by
}
