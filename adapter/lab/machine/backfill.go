package machine

import (
	"cmp"
	"slices"

	"github.com/evoslurm/evoslurm/planner"
)

// Backfill is a scheduler as sites have it: rigid jobs in order of submission, with backfilling by
// the time limits that users request ([Job.Limit]; without one, the job's duration). No limit may
// be shorter than the job.
//
// EASY (Lifka 1995): a job starts out of turn if it fits now and does not delay the first waiting
// job, by the limits of the running jobs. It must end before the first job's start or use nodes
// that the first job leaves. Conservative (Mu'alem and Feitelson 2001): every job has its place
// from its submission on, the earliest that delays no other job's. If a job ends before its limit,
// waiting jobs move to the earliest place, one after the other in order of submission.
type Backfill struct {
	Conservative bool

	ends     []ending // running jobs by the ends of their limits, soonest first
	all      planner.Timeline
	reserved map[*Run]int64 // starts of waiting jobs
}

// ending is the latest end of a running job.
type ending struct {
	at  int64
	run *Run
}

// limit returns how long a job may take.
func (r *Run) limit() int64 {
	takes := r.seconds(r.Phases[0].Pref)
	return max(r.Limit, takes)
}

// Schedule implements [Scheduler].
func (s *Backfill) Schedule(m *Machine) {
	if s.Conservative {
		s.conservative(m)
		return
	}
	s.easy(m)
}

// start starts a job.
func (s *Backfill) start(m *Machine, r *Run) {
	if r.Kind != Rigid {
		m.fail("job %d is %s: backfilling is of rigid jobs", r.Number+1, r.Kind)
		return
	}
	e := ending{m.Now + r.limit(), r}
	i, _ := slices.BinarySearchFunc(s.ends, e.at+1, func(e ending, at int64) int { return cmp.Compare(e.at, at) })
	s.ends = slices.Insert(s.ends, i, e)
	m.Start(r, r.Phases[0].Pref)
}

func (s *Backfill) easy(m *Machine) {
	s.ends = slices.DeleteFunc(s.ends, func(e ending) bool { return e.run.finished })
	for len(m.Queue) > 0 && m.Queue[0].Phases[0].Pref <= m.Free && m.err == nil {
		s.start(m, m.Queue[0])
	}
	if len(m.Queue) < 2 || m.Free == 0 {
		return
	}
	// When the first job can start, and what is left then.
	shadow, extra := int64(0), m.Free-m.Queue[0].Phases[0].Pref
	for _, e := range s.ends {
		if extra >= 0 && e.at > shadow {
			break
		}
		extra += e.run.Size
		shadow = e.at
	}
	for i := 1; i < len(m.Queue) && m.Free > 0 && m.err == nil; {
		r := m.Queue[i]
		n := r.Phases[0].Pref
		before := m.Now+r.limit() <= shadow
		if n > m.Free || !before && n > extra {
			i++
			continue
		}
		if !before {
			extra -= n
		}
		s.start(m, r) // and the next job has its place in the queue
	}
}

func (s *Backfill) conservative(m *Machine) {
	if s.reserved == nil {
		s.reserved = make(map[*Run]int64)
	}
	early := false
	s.ends = slices.DeleteFunc(s.ends, func(e ending) bool {
		if e.run.finished && e.at > m.Now {
			s.all.Add(m.Now, e.at, -e.run.Phases[0].Pref)
			early = true
		}
		return e.run.finished
	})
	next := planner.Forever
	wait := slices.Clone(m.Queue)
	for _, r := range wait {
		at, placed := s.reserved[r]
		n, limit := r.Phases[0].Pref, r.limit()
		switch {
		case !placed:
			if at = s.all.EarliestFree(m.Now, n, limit, m.Nodes); at >= planner.Forever {
				m.fail("job %d has no place", r.Number+1)
				return
			}
			s.reserved[r] = at
			s.all.Add(at, at+limit, n)
		case early && at > m.Now:
			if sooner := s.sooner(m, at, n, limit); sooner < at {
				s.all.Remove(at, at+limit, n)
				s.all.Add(sooner, sooner+limit, n)
				s.reserved[r], at = sooner, sooner
			}
		}
		next = min(next, at)
	}
	if next > m.Now {
		s.wake(m, next)
		return
	}
	next = planner.Forever
	for _, r := range wait {
		if at := s.reserved[r]; at <= m.Now {
			delete(s.reserved, r)
			s.start(m, r)
		} else {
			next = min(next, at)
		}
	}
	s.wake(m, next)
}

// sooner returns the earliest place before second at of a job that has a place at second at; at if
// there is none. Most jobs have none, so it does not first remove the job's own place, which only
// matters from at on.
func (s *Backfill) sooner(m *Machine, at int64, nodes int, limit int64) int64 {
	for t := m.Now; ; {
		if t = s.all.FirstAtMost(t, m.Nodes-nodes); t >= at {
			return at
		}
		above := s.all.LastAbove(t, min(t+limit, at), m.Nodes-nodes)
		if above == t {
			return t
		}
		t = above
	}
}

// wake requests a call when the next job should start, if nothing else happens then.
func (s *Backfill) wake(m *Machine, at int64) {
	if at < planner.Forever {
		m.Wake(at)
	}
}
