package lease

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Claim is a reservation that claims the right to act.
type Claim struct {
	Epoch  int64 // part of its name: Slurm admits each once
	Holder int64 // a random number of the process that created it
	Beat   int64 // changes with each renewal
}

// Nobody is the holder of a reservation that is only named like a claim: it takes its epoch, and has no other effect.
const Nobody = -1

// Prefix begins the names of the reservations that are claims. The epoch follows.
const Prefix = "evo_lease_"

// mostBeats bounds the beats of renewals; after it, they begin again.
const mostBeats = 1 << 24

// givenUp returns the beat with which a holder gives its claim up. No administrator writes it by mistake.
func givenUp(holder int64) int64 { return mostBeats + 1 + holder%mostBeats }

// Beats reports whether a holder may write this beat.
func Beats(beat int64) bool { return beat > 0 && beat <= 2*mostBeats }

// Terms holds the durations of the rules.
type Terms struct {
	Hold  time.Duration // how long a renewal lets its holder act
	Take  time.Duration // how long claims must stand still before another sidecar takes over
	Gap   time.Duration // longest gap in an observation; how long a new claim must stand
	Every time.Duration // between reads
	Renew time.Duration // between renewals of a holder: slurmctld logs each
}

// TermsOf returns terms with which another sidecar acts within the given time after the holder's last renewal.
func TermsOf(takeover time.Duration) Terms {
	return Terms{Hold: takeover / 3, Take: takeover * 13 / 30, Gap: takeover / 6, Every: takeover / 20, Renew: takeover / 10}
}

// Kind says what a command does.
type Kind int

// The commands.
const (
	Read   Kind = iota // all claims
	Create             // a claim of the epoch, which must not exist
	Renew              // write the beat into the claim
	Delete             // the claim
)

// Action is a command for Slurm.
type Action struct {
	Kind        Kind
	Epoch, Beat int64
	Before      time.Duration // do not send it later; 0: at any time
}

// Phase is how far a machine is.
type Phase int

// The phases.
const (
	Waiting  Phase = iota // observes the claims
	Claiming              // has sent a creation
	Proving               // has a claim, and waits until it has stood for Gap
	Holding               // may act while its renewals are confirmed
)

// Machine is the state of one sidecar. Its times are those of the caller's clock.
type Machine struct {
	self  int64
	terms Terms

	phase       Phase
	epoch, beat int64
	renewed     time.Duration // when the last renewal was sent
	proven      time.Duration // when a read first showed the claim
	until       time.Duration // the right to act ends

	read        bool          // at least once
	claims      []Claim       // as last read
	taken       []int64       // epochs of nobody's
	since, last time.Duration // the claims stand still since; the last read was sent
	next        time.Duration // when to begin the next round
	queue       []Action
	lost        string
}

// New returns a machine that waits. self must be random: no two processes may have the same.
func New(self int64, t Terms) *Machine { return &Machine{self: self, terms: t} }

// Phase returns how far the machine is.
func (m *Machine) Phase() Phase { return m.phase }

// Until returns the time before which the sidecar may act.
func (m *Machine) Until() time.Duration { return m.until }

// Claims returns the claims as last read, by epoch.
func (m *Machine) Claims() []Claim { return m.claims }

// Lost returns why the machine last lost its claim.
func (m *Machine) Lost() string { return m.lost }

// Epoch returns the epoch of the machine's claim.
func (m *Machine) Epoch() int64 { return m.epoch }

// Next returns the next command, and when to send it.
func (m *Machine) Next() (Action, time.Duration) {
	if len(m.queue) == 0 {
		if m.phase >= Proving {
			m.queue = append(m.queue, m.renewal())
		}
		m.queue = append(m.queue, Action{Kind: Read})
		return m.queue[0], m.next
	}
	return m.queue[0], 0
}

func (m *Machine) renewal() Action {
	return Action{Kind: Renew, Epoch: m.epoch, Beat: m.beat%mostBeats + 1}
}

// GiveUp ends the right to act and returns the command that lets another sidecar take over at once. Call it when
// no command of the sidecar is under way.
func (m *Machine) GiveUp() Action {
	a := Action{Kind: Renew, Epoch: m.epoch, Beat: givenUp(m.self)}
	m.wait()
	return a
}

// Done takes the result of the command that Next returned: when it was sent and answered, and of a read the
// claims, unless it failed. Of the others it does not matter whether they failed: a read follows.
func (m *Machine) Done(a Action, sent, got time.Duration, claims []Claim, failed bool) {
	m.queue = m.queue[1:]
	switch {
	case a.Kind == Renew:
		m.beat, m.renewed = a.Beat, sent
		return
	case a.Kind != Read:
		return
	}
	if m.next = got + m.terms.Every; m.phase == Holding {
		m.next = got + m.terms.Renew
	}
	if failed {
		return
	}
	m.taken = nil
	claims = slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool {
		if c.Holder == Nobody {
			m.taken = append(m.taken, c.Epoch)
		}
		return c.Holder == Nobody
	})
	claims = slices.SortedFunc(slices.Values(claims), func(a, b Claim) int { return cmp.Compare(a.Epoch, b.Epoch) })
	before := m.claims
	if !m.read || !slices.Equal(claims, before) || got-m.last > m.terms.Gap {
		m.since = got
	}
	m.read, m.claims, m.last = true, claims, sent
	switch m.phase {
	case Waiting:
		m.consider(sent)
	case Claiming:
		m.claimed(before, got)
	default:
		m.confirm(sent)
	}
}

// top returns the highest claim, or an empty one.
func (m *Machine) top() Claim {
	if len(m.claims) == 0 {
		return Claim{}
	}
	return m.claims[len(m.claims)-1]
}

// consider creates a claim if the holder is gone.
func (m *Machine) consider(sent time.Duration) {
	top := m.top()
	if sent-m.since < m.terms.Take && (top.Epoch == 0 || top.Beat != givenUp(top.Holder)) {
		return
	}
	m.phase, m.epoch, m.beat = Claiming, top.Epoch+1, 1
	for slices.Contains(m.taken, m.epoch) {
		m.epoch++
	}
	m.queue = []Action{{Kind: Create, Epoch: m.epoch, Beat: m.beat, Before: sent + m.terms.Gap}, {Kind: Read}}
}

// claimed goes on after the creation of a claim.
func (m *Machine) claimed(before []Claim, got time.Duration) {
	own := m.top()
	if own.Epoch != m.epoch || own.Holder != m.self {
		m.wait()
		return
	}
	if !slices.Equal(m.claims[:len(m.claims)-1], before) {
		epoch := m.epoch
		m.wait()
		m.queue = []Action{{Kind: Delete, Epoch: epoch}}
		return
	}
	m.phase, m.proven = Proving, got
	m.queue = []Action{m.renewal(), {Kind: Read}}
}

// confirm extends the right to act, or ends it.
func (m *Machine) confirm(sent time.Duration) {
	if own := m.top(); own.Epoch != m.epoch || own.Holder != m.self {
		m.lost = fmt.Sprintf("the lease %s%d is gone or changed; an administrator or a restart of slurmctld did that", Prefix, m.epoch)
		if own.Epoch > m.epoch {
			m.lost = fmt.Sprintf("another sidecar took over: it has the lease %s%d", Prefix, own.Epoch)
		}
		m.wait()
		return
	} else if own.Beat != m.beat {
		return // the renewal has not arrived
	}
	if m.phase == Proving && sent >= m.proven+m.terms.Gap {
		m.phase = Holding
	}
	if m.phase == Holding {
		m.until = m.renewed + m.terms.Hold
	}
	for _, c := range m.claims[:len(m.claims)-1] {
		m.queue = append(m.queue, Action{Kind: Delete, Epoch: c.Epoch})
	}
}

// wait begins to observe.
func (m *Machine) wait() { m.phase, m.until, m.queue = Waiting, 0, nil }
