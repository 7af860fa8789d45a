package lease

import (
	"testing"
	"time"
)

// script plays a machine with terms of 30 s by hand.
type script struct {
	*testing.T
	m   *Machine
	now time.Duration
}

// does checks the next command, and answers it after a tenth of a second.
func (s *script) does(kind Kind, epoch int64, claims ...Claim) {
	s.Helper()
	a, at := s.m.Next()
	if a.Kind != kind || a.Epoch != epoch {
		s.Fatalf("at %v: next is %+v, want kind %d of epoch %d", s.now, a, kind, epoch)
	}
	sent := max(s.now, at)
	s.now = sent + 100*time.Millisecond
	s.m.Done(a, sent, s.now, claims, false)
}

// watches reads the same claims until the machine creates its own.
func (s *script) watches(claims ...Claim) {
	s.Helper()
	for range 30 {
		s.does(Read, 0, claims...)
		if s.m.Phase() == Claiming {
			return
		}
	}
	s.Fatal("no takeover")
}

// holds takes the lease 2 over from another holder.
func holds(t *testing.T) *script {
	s := &script{T: t, m: New(7, TermsOf(30*time.Second)), now: time.Hour}
	old := Claim{1, 5, 3}
	s.watches(old)
	if since := s.now - time.Hour; since < 13*time.Second || since > 16*time.Second {
		t.Errorf("took over after %v", since)
	}
	s.does(Create, 2)
	s.does(Read, 0, old, Claim{2, 7, 1})
	for s.m.Phase() == Proving {
		s.does(Renew, 2)
		s.does(Read, 0, old, Claim{2, 7, s.m.beat})
		if len(s.m.queue) > 0 {
			s.does(Delete, 1)
		}
	}
	if stood := s.now - s.m.proven; stood < 5*time.Second {
		t.Errorf("acts once its claim has stood for %v", stood)
	}
	return s
}

func TestHolder(t *testing.T) {
	s := holds(t)
	was := s.m.Until()
	s.does(Renew, 2)
	s.does(Read, 0, Claim{2, 7, s.m.beat - 1})
	if s.m.Until() != was {
		t.Error("a renewal that has not arrived lengthens the right")
	}
	s.does(Renew, 2)
	sent := s.now - 100*time.Millisecond
	s.does(Read, 0, Claim{2, 7, s.m.beat})
	if got := s.m.Until() - sent; got != 10*time.Second {
		t.Errorf("the right lasts %v from the sending of the renewal", got)
	}
}

// TestLost: another claim, a changed one, or none ends the right at once.
func TestLost(t *testing.T) {
	for _, claims := range [][]Claim{nil, {{2, 8, 9}}, {{2, 7, 9}, {3, 8, 1}}} {
		s := holds(t)
		s.does(Renew, 2)
		s.does(Read, 0, claims...)
		if s.m.Until() != 0 || s.m.Phase() != Waiting || s.m.Lost() == "" {
			t.Errorf("with claims %v, the sidecar acts until %v", claims, s.m.Until())
		}
	}
}

// TestWithdraw: a holder that renewed while another created its claim keeps the lease.
func TestWithdraw(t *testing.T) {
	for _, claims := range [][]Claim{{{1, 5, 4}, {2, 7, 1}}, {{2, 7, 1}}} {
		s := &script{T: t, m: New(7, TermsOf(30*time.Second))}
		s.watches(Claim{1, 5, 3})
		s.does(Create, 2)
		s.does(Read, 0, claims...)
		if s.m.Phase() != Waiting {
			t.Errorf("claims became %v: phase %v", claims, s.m.Phase())
		}
		s.does(Delete, 2)
	}
}

// TestGivenUp: a claim that was given up is taken at once; a beat that only looks odd is not.
func TestGivenUp(t *testing.T) {
	holder := holds(t)
	free := Claim{2, 7, holder.m.GiveUp().Beat}
	s := &script{T: t, m: New(9, TermsOf(30*time.Second))}
	s.does(Read, 0, Claim{2, 8, free.Beat})
	if s.m.Phase() != Waiting {
		t.Error("took another holder's claim")
	}
	s.does(Read, 0, free)
	s.does(Create, 3)
}

// TestNobody: reservations that are only named like claims neither end the right to act nor keep a sidecar from it.
func TestNobody(t *testing.T) {
	s := holds(t)
	s.does(Renew, 2)
	s.does(Read, 0, Claim{2, 7, s.m.beat}, Claim{9, Nobody, 0})
	if s.m.Phase() != Holding {
		t.Error("lost the lease to nobody")
	}
	s.m = New(9, TermsOf(30*time.Second))
	odd := []Claim{{2, 7, 3}, {3, Nobody, 0}, {1e15, Nobody, 0}}
	s.watches(odd...)
	s.does(Create, 4)
	s.does(Read, 0, append(odd, Claim{4, 9, 1})...)
	if s.m.Phase() != Proving {
		t.Error("its own claim does not count")
	}
}

// TestGap: an observation with a gap begins again.
func TestGap(t *testing.T) {
	s := &script{T: t, m: New(7, TermsOf(30*time.Second))}
	for range 8 {
		s.does(Read, 0, Claim{1, 5, 3})
	}
	s.now += 6 * time.Second
	s.does(Read, 0, Claim{1, 5, 3})
	if s.m.since != s.now {
		t.Errorf("counts from %v, want %v", s.m.since, s.now)
	}
}
