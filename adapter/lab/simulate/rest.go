package simulate

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
)

// rest is a time in which the sidecar's polls are skipped: each would show what the last one
// showed, without effect (see core.Core.Still). They count as made, at the times at which they
// would have begun. If something changes while a poll would be under way, that poll is made.
type rest struct {
	On    bool
	Until time.Duration // when the next poll is made, as far as known
	polls               // the polls skipped until then
}

// polls are the polls that the sidecar would make if nothing happened. Times are those of
// slurmsim.Cluster.Elapsed.
type polls struct {
	Every time.Duration
	Next  time.Duration // the first one that is not counted yet
	Last  time.Duration // the last one that is

	Config time.Duration // until then they do not read Slurm's configuration
	Read   time.Duration // how much longer a poll with the configuration takes
	Lasts  time.Duration // what others last

	Count, Configs uint64
}

// pass counts all polls before a time.
func (p *polls) pass(to time.Duration) {
	for p.Next < to {
		n := int64((to - p.Next + p.Every - 1) / p.Every)
		k := int64(0) // which one reads the configuration
		if p.Config >= p.Next {
			k = int64((p.Config-p.Next)/p.Every) + 1
		}
		n = min(n, k+1)
		p.Last = p.Next + time.Duration(n-1)*p.Every
		p.Next = p.Last + p.Every
		p.Count += uint64(n)
		if n > k {
			p.Next += p.Read // the interval counts from its other commands
			p.Config = p.Last + p.Read + p.Lasts + msg.ConfigFor
			p.Configs++
		}
	}
}

// from returns the first poll from a time on.
func (p polls) from(t time.Duration) time.Duration {
	p.pass(t)
	return p.Next
}

// before returns the last poll until a time, if there is one.
func (p polls) before(t time.Duration) (time.Duration, bool) {
	p.Last = -1
	p.pass(t + 1)
	return p.Last, p.Last >= 0
}

// schedule has the core called, and ends the rest then.
func (s *Sidecar) schedule(in time.Duration, resumes bool) {
	s.Wakes++
	if s.Skip && in >= msg.MostWake && len(s.tasks) > 0 {
		return // what is under way will come out before
	}
	s.Cluster.Later(in, ticks{s, s.Life, s.Wakes, resumes})
}

// ticks calls the core, unless another call was scheduled since.
type ticks struct {
	S           *Sidecar
	Life, Wakes int
	Resumes     bool
}

// Act implements slurmsim.Action.
func (t ticks) Act(*slurmsim.Cluster) {
	if s := t.S; s.Life == t.Life && s.Wakes == t.Wakes {
		if t.Resumes {
			s.rested()
		}
		s.give(msg.Tick{})
	}
}

// searches reports whether plans may differ although only time has passed.
func (s *Sidecar) searches() bool {
	_, search := s.Strategy.(planner.Search)
	return search
}

// tryRest reports whether no poll is needed at the time for which the core asked.
func (s *Sidecar) tryRest(at time.Time) bool {
	s.rested() // where something came in between
	if s.Still = 0; !s.Skip || s.Lasts == 0 || s.searches() || s.Seen != s.Cluster.Version() {
		return false
	}
	until := s.core.Still()
	s.Still = until.Sub(s.Base)
	if s.core.PutOff() || !until.After(at) {
		return false
	}
	p := polls{Every: s.Config.PollInterval, Next: at.Sub(s.Base), Config: s.core.ConfigRead().Add(msg.ConfigFor).Sub(s.Base), Read: time.Duration(s.Cluster.ConfigCommands()) * s.Cluster.Looking(), Lasts: s.Lasts}
	// the last poll before that is made, so that the next event finds the core in its usual state
	last, some := p.before(s.minded(until.Sub(s.Base)))
	if !some || last == p.Next {
		return false
	}
	s.Resting = rest{On: true, Until: last, polls: p}
	s.core.Rest(s.Base.Add(last))
	s.Wakes++
	return true
}

// repeats reports whether the sidecar only polls, the poll shows what the last one showed, and
// nothing else would happen during it. Then the poll is skipped and counts as made.
func (s *Sidecar) repeats(effects []msg.Effect) bool {
	if s.Still == 0 || len(effects) != 2 || s.Seen != s.Cluster.Version() {
		return false
	}
	p, polls := effects[0].(msg.Poll)
	wake, waits := effects[1].(msg.Wake)
	ends := s.Cluster.Elapsed() + s.Lasts
	if !polls || !waits || p.Config || p.Gently || s.Lasts == 0 || s.Still <= ends || wake.At.Sub(s.Base) <= ends {
		return false
	}
	if next, some := s.Cluster.Next(); some && next <= ends {
		return false
	}
	s.Skipped++
	s.Wakes++
	s.Cluster.Later(s.Lasts, samePoll{s, s.Life, s.now()})
	return true
}

// samePoll is the end of a poll that was skipped.
type samePoll struct {
	S     *Sidecar
	Life  int
	Begun time.Time
}

// Act implements slurmsim.Action.
func (p samePoll) Act(*slurmsim.Cluster) {
	if s := p.S; s.Life == p.Life {
		s.core.Same(p.Begun, s.now())
		s.give(msg.Tick{})
	}
}

// resume schedules the next poll at a time at which one would be made.
func (s *Sidecar) resume(then time.Duration) {
	s.schedule(then-s.Cluster.Elapsed(), true)
}

// rested ends the rest: its polls until now count as made.
func (s *Sidecar) rested() {
	p := s.Resting.polls
	if p.Every == 0 {
		return // it is at work
	}
	p.pass(s.Cluster.Elapsed())
	s.Skipped += p.Count
	read := time.Time{}
	if s.Configs += p.Configs; p.Configs > 0 {
		read = s.Base.Add(p.Config - msg.ConfigFor)
	}
	if p.Count > 0 {
		s.core.Rested(s.Base.Add(p.Last), read)
	}
	s.Resting = rest{}
}

// Advance runs the next event on the cluster's agenda and reports whether there was one. If the
// sidecar may skip polls, only Advance moves the clock.
func (s *Sidecar) Advance() bool {
	if !s.Cluster.Step() {
		return false
	}
	s.goOn()
	return true
}

// goOn ends the rest if the next event must find the sidecar at work.
func (s *Sidecar) goOn() {
	r := &s.Resting
	if !r.On {
		return
	}
	next, some := s.Cluster.Next()
	switch {
	case s.Seen != s.Cluster.Version():
		r.Until = min(r.Until, r.from(s.Cluster.Elapsed()))
	case !some || next >= r.Until:
	default:
		begins, polled := r.before(next)
		if !polled || next-begins >= r.Lasts+r.Read {
			return
		}
		r.Until = begins // it would be under way
	}
	r.On = false
	s.resume(r.Until)
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
	s.Still = 0
	if r := &s.Resting; r.On {
		r.On = false
		s.resume(r.from(s.Cluster.Elapsed()))
		s.rested()
	}
}

// appoint says that a job will call at that time: the poll before that is made.
func (s *Sidecar) appoint(in time.Duration) {
	if s.Skip {
		s.Appointed = append(s.Appointed, s.Cluster.Elapsed()+in)
	}
}

// nap sleeps in a script that calls afterwards.
func (s *Sidecar) nap(p *slurmsim.Process, d time.Duration) {
	if !p.Resumed() {
		s.appoint(d)
	}
	p.Sleep(d)
}

// minded returns the earlier of a time and the next call.
func (s *Sidecar) minded(until time.Duration) time.Duration {
	now, left := s.Cluster.Elapsed(), s.Appointed[:0]
	for _, at := range s.Appointed {
		if at < now {
			continue
		}
		left = append(left, at)
		until = min(until, at)
	}
	s.Appointed = left
	return until
}
