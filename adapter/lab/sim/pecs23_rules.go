package sim

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/adapter/lab/machine"
)

// agreement is the rule pref_agreement of Posner, Hupfeld and Finnerty (PECS 2023), as it really
// works. With only backfill, or only rigid jobs, it is their baselines. It is called at every event
// and once a minute.
//
//  1. The first waiting job starts on the nodes that it prefers, or on what is free if it can do
//     with that. The test for starting later jobs as well compares seconds with operations
//     and never does, so rigid_easy_backfill is first come, first served. rigid_backfill starts
//     whatever fits. A job that starts hides the one behind it for that call.
//  2. For every waiting job running malleable jobs are to leave nodes, all that it needs, with
//     what is free left out: those most above their preferred size first, and from no more than
//     that, if it suffices. The nodes are kept for the job until all of them are there.
//  3. What is free then goes to those most below their preferred size, and then up to their maximum.
type agreement struct {
	backfill, rigid bool
	agreed          map[*machine.Run]int // nodes that a waiting job will get
}

func (a *agreement) Schedule(m *machine.Machine) {
	var running []*machine.Run // before anything starts
	if !a.rigid {
		for _, r := range m.Running {
			if r.Kind == machine.Malleable && !r.Changing() {
				running = append(running, r)
			}
		}
		slices.SortFunc(running, byNumber)
	}
	for _, r := range slices.Clone(m.Queue) {
		if n := a.agreed[r]; n > 0 && r.Held == n {
			m.Start(r, n)
			delete(a.agreed, r)
		}
	}
	waiting := a.waiting(m)
	for i := 0; i < len(waiting) && m.Free > 0; i++ {
		if least, _ := waiting[i].Bounds(); least <= m.Free {
			m.Start(waiting[i], min(waiting[i].Phases[0].Pref, m.Free))
			waiting = slices.Delete(waiting, i, i+1)
		}
		if !a.backfill {
			break
		}
	}
	if len(running) == 0 {
		return
	}
	for _, r := range waiting {
		a.shrink(m, running, r)
	}
	for _, most := range []bool{false, true} {
		if m.Free > 0 {
			expand(m, running, most)
		}
	}
}

// waiting returns the jobs without an agreement.
func (a *agreement) waiting(m *machine.Machine) []*machine.Run {
	if len(a.agreed) == 0 {
		return slices.Clone(m.Queue)
	}
	return slices.DeleteFunc(slices.Clone(m.Queue), func(r *machine.Run) bool { return a.agreed[r] > 0 })
}

func byNumber(a, b *machine.Run) int { return cmp.Compare(a.Number, b.Number) }

// above returns how far a job is above its preferred size.
func above(r *machine.Run) int { return r.Assigned() - r.Phases[0].Pref }

// shrink makes room for a waiting job, if possible.
func (a *agreement) shrink(m *machine.Machine, running []*machine.Run, r *machine.Run) {
	abovePref, aboveMin := 0, 0
	for _, x := range running {
		least, _ := x.Bounds()
		abovePref += max(above(x), 0)
		aboveMin += x.Assigned() - least
	}
	p := &r.Phases[0]
	least, _ := r.Bounds()
	var need int
	keepPref := true
	switch {
	case p.Pref <= abovePref:
		need = p.Pref
	case least <= abovePref:
		need = least
	case least <= aboveMin:
		need, keepPref = least, false
	default:
		return
	}
	a.agreed[r] = need
	givers := slices.Clone(running)
	slices.SortStableFunc(givers, func(x, y *machine.Run) int { return cmp.Compare(above(y), above(x)) })
	for _, x := range givers {
		keep, _ := x.Bounds()
		if keepPref {
			keep = x.Phases[0].Pref
		}
		if n := min(x.Assigned()-keep, need); n > 0 {
			m.Shrink(x, n, r)
			need -= n
		}
	}
}

// expand gives out free nodes, up to the preferred or the maximal size.
func expand(m *machine.Machine, running []*machine.Run, most bool) {
	takers := slices.Clone(running)
	slices.SortStableFunc(takers, func(x, y *machine.Run) int { return cmp.Compare(above(x), above(y)) })
	for _, x := range takers {
		goal := x.Phases[0].Pref
		if most {
			_, goal = x.Bounds()
		}
		if n := min(goal-x.Assigned(), m.Free); n > 0 {
			m.Grow(x, n)
		}
	}
}
