package simulate

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/core"
	"github.com/evoslurm/evoslurm/planner"
)

// rest is a time in which the sidecar's polls are left out: each would show what the last
// one has shown, and nothing would follow from it (see core.Core.Still). They are taken to
// have been made, at the times at which they would have begun. Where something changes
// while one of them would be under way that one is made.
type rest struct {
	on           bool
	first, every time.Duration // of the polls that are left out, see slurmsim.Cluster.Elapsed
	until        time.Duration // when the next one is made, as far as is known
}

// mostWake is after how long the core wants to be called though it knows of nothing to do.
const mostWake = time.Minute

// schedule has the core called.
func (s *Sidecar) schedule(in time.Duration, tick func()) {
	s.wakes++
	if s.Skip && in >= mostWake && len(s.tasks) > 0 {
		return // what is under way will come out before
	}
	wakes, life := s.wakes, s.life
	s.Cluster.After(in, func() {
		if s.life == life && s.wakes == wakes {
			tick()
		}
	})
}

// searches reports whether equal plans are not certain where nothing has changed but the time.
func (s *Sidecar) searches() bool {
	_, search := s.Strategy.(planner.Search)
	return search
}

// tryRest reports whether no poll is needed at the time for which the core asked.
func (s *Sidecar) tryRest(at time.Time) bool {
	r := &s.rest
	if r.every > 0 { // something came in between
		s.skipped, s.rest = s.LeftOut(), rest{}
	}
	if r.on = false; !s.Skip || s.searches() || s.seen != s.Cluster.Version() {
		return false
	}
	until := s.core.Still()
	if !until.After(at) {
		return false
	}
	first, every := at.Sub(s.base), s.Config.PollInterval
	// the last poll before that is made: what comes then is to find the core as it would
	last := first + max(s.minded(until.Sub(s.base))-first, 0).Truncate(every)
	if last <= first {
		return false
	}
	s.rest = rest{on: true, first: first, every: every, until: last}
	s.core.Rest(s.base.Add(r.until))
	s.wakes++
	return true
}

// resume has the next poll made at a time at which one would be.
func (s *Sidecar) resume(then time.Duration) {
	s.schedule(then-s.Cluster.Elapsed(), func() {
		s.skipped = s.LeftOut()
		s.rest = rest{}
		s.give(core.Tick{})
	})
}

// LeftOut is how many polls were left out so far.
func (s *Sidecar) LeftOut() uint64 {
	r := &s.rest
	if r.every == 0 {
		return s.skipped
	}
	return s.skipped + uint64(up(s.Cluster.Elapsed()-r.first, r.every)/r.every)
}

// Advance does the next thing on the cluster's agenda and reports whether there was one.
// Where the sidecar may skip polls it is this that moves the clock.
func (s *Sidecar) Advance() bool {
	if !s.Cluster.Step() {
		return false
	}
	s.goOn()
	return true
}

// goOn ends the rest if the next thing is to find the sidecar at work.
func (s *Sidecar) goOn() {
	r := &s.rest
	if !r.on {
		return
	}
	next, some := s.Cluster.Next()
	begins := r.first + (next - r.first).Truncate(r.every) // the last poll until then
	switch {
	case s.seen != s.Cluster.Version():
		r.until = min(r.until, r.first+up(s.Cluster.Elapsed()-r.first, r.every))
	case !some || next >= r.until:
	case next >= r.first && next-begins < s.took: // it would be under way
		r.until = begins
	default:
		return
	}
	r.on = false
	s.resume(r.until)
}

// Sleep lets virtual time pass. What happens then comes from outside: where polls are left
// out, the next one is made.
func (s *Sidecar) Sleep(d time.Duration) {
	if !s.Skip {
		s.Cluster.Sleep(d)
		return
	}
	over := false
	s.Cluster.After(d, func() { over = true })
	for s.Cluster.Step(); !over; s.Cluster.Step() {
		s.goOn()
	}
	s.Cluster.Sleep(0) // what else happens at that time
	if r := &s.rest; r.on {
		r.on = false
		s.resume(r.first + up(s.Cluster.Elapsed()-r.first, r.every))
	}
}

// up rounds up.
func up(d, to time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return (d + to - 1).Truncate(to)
}

// appoint says that a job will call at that time: the poll before that is made.
func (s *Sidecar) appoint(in time.Duration) {
	if s.Skip {
		s.calls = append(s.calls, s.Cluster.Elapsed()+in)
	}
}

// minded is a time, or that of the next call.
func (s *Sidecar) minded(until time.Duration) time.Duration {
	now, left := s.Cluster.Elapsed(), s.calls[:0]
	for _, at := range s.calls {
		if at < now {
			continue
		}
		left = append(left, at)
		until = min(until, at)
	}
	s.calls = left
	return until
}
