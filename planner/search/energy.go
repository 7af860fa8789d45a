package search

import (
	"fmt"
	"strings"

	"github.com/evoslurm/evoslurm/planner/internal/exact"
	"github.com/evoslurm/evoslurm/planner/paper"
	"github.com/evoslurm/evoslurm/planner/profile"
	"github.com/evoslurm/evoslurm/planner/timeline"
)

// Energy places the jobs one by one in list order, as noX does, but a job may start later if its nodes are then idle for less
// time: right after other jobs, so that few nodes are on. A node that is idle goes off, and a shutdown and boot draw what it draws
// in Restart idle seconds. So an idle period costs its length, at most Restart. A job that starts Wait seconds later must save a
// Restart of every node of its largest step, one that starts half as late half of it, and so on.
//
// The wait counts from the time of the plan: if other jobs come or end, a job that waits may be put off again.
type Energy struct{ Wait, Restart int64 }

// The times of Energy where none are given, in seconds.
const (
	energyWait    = 600
	energyRestart = 300
)

// mostStarts bounds the starts that are tried for a job.
const mostStarts = 12

// EnergyByName returns energy, or energy+WAIT with a duration such as 1h.
func EnergyByName(name string) (paper.Strategy, error) {
	e := Energy{energyWait, energyRestart}
	text, given := strings.CutPrefix(name, "energy+")
	if !given && name != "energy" {
		return nil, fmt.Errorf("unknown strategy %.100q", name)
	}
	if given {
		var err error
		if e.Wait, err = profile.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("strategy %.100q: %w", name, err)
		}
	}
	return e, nil
}

// Name is "energy", with +WAIT unless it is the default.
func (e Energy) Name() string {
	if e.Wait == energyWait {
		return "energy"
	}
	return fmt.Sprintf("energy+%ds", e.Wait)
}

// ExpandLimit returns the limit of jobs without their own.
func (Energy) ExpandLimit() profile.ExpandLimit { return 1 }

// Steady reports that a plan stays valid while only time passes: the wait for the start that was chosen then gets shorter, and all
// others stay as far from it.
func (Energy) Steady() bool { return true }

// Plan implements paper.Strategy.
func (e Energy) Plan(p paper.Problem) (paper.Schedule, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	res, all := p.Timeline(), make(paper.Schedule, len(p.Jobs))
	for i, job := range p.Jobs {
		placed, ok := e.place(res, p.Nodes, job)
		if !ok {
			return nil, &paper.FitError{Job: i, ID: job.ID, Reason: "there is no time at which its nodes are free for long enough"}
		}
		all[i] = placed
		res.AddPlacement(placed)
	}
	return all, nil
}

// place returns the placement that costs least; of equal ones the earliest.
func (e Energy) place(res *timeline.Timeline, nodes int, job paper.Job) (best profile.Placement, ok bool) {
	o := paper.FitOptions{NotBefore: job.Submit, Limit: 1}
	if job.ExpandLimit != 0 {
		o.Limit = job.ExpandLimit
	}
	if best, ok = paper.Fit(res, nodes, job.Profile, o); !ok || e.Wait == 0 {
		return best, ok
	}
	last := exact.AddTime(best.Start, e.Wait)
	from, to := best.Start-e.Restart, exact.AddTime(exact.AddTime(best.End(), 2*e.Wait), e.Restart)
	first, least := best.Start, e.cost(res, nodes, best, from, to)
	for _, o.NotBefore = range starts(res, best, last) {
		if other, fits := paper.Fit(res, nodes, job.Profile, o); fits && other.Start <= last && other.End() <= exact.AddTime(best.End(), e.Wait) {
			wait := int64(job.Profile.Peak()) * (e.Restart * (other.Start - first) / e.Wait)
			if cost := e.cost(res, nodes, other, from, to) + wait; cost < least {
				best, least = other, cost
			}
		}
	}
	return best, true
}

// starts returns the first times at which a placement, or its largest step, would begin just when nodes become free, until a
// last one.
func starts(res *timeline.Timeline, placed profile.Placement, last int64) (all []int64) {
	peak := placed.Start
	for _, s := range placed.Steps {
		if s.Nodes == placed.Steps.Peak() {
			break
		}
		peak += s.Duration
	}
	before := 0
	res.Walk(placed.Start, exact.AddTime(peak, last-placed.Start)+1, func(start, _ int64, used int) {
		if used < before {
			for _, at := range [2]int64{start, start - (peak - placed.Start)} {
				if at > placed.Start && at <= last && len(all) < mostStarts {
					all = append(all, at)
				}
			}
		}
		before = used
	})
	return all
}

// cost returns what nodes cost that are idle before they are used within [from, to), with a placement in addition. Nodes are
// alike: the one that was used last is used next.
func (e Energy) cost(res *timeline.Timeline, nodes int, placed profile.Placement, from, to int64) (cost int64) {
	res.AddPlacement(placed)
	defer res.RemovePlacement(placed)
	type group struct {
		since int64
		nodes int
	}
	idle, used := []group{{from - e.Restart, nodes}}, 0
	res.Walk(from, to, func(start, _ int64, now int) {
		if now < used {
			idle = append(idle, group{start, used - now})
		}
		for ; used < now && len(idle) > 0; used = min(used, now) {
			g := &idle[len(idle)-1]
			n := min(g.nodes, now-used)
			cost += int64(n) * min(start-g.since, e.Restart)
			used += n
			if g.nodes -= n; g.nodes == 0 {
				idle = idle[:len(idle)-1]
			}
		}
		used = now
	})
	return cost
}
