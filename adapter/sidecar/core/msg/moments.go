package msg

import "time"

// Moments holds when the decisions of the latest cycle may turn out differently although nothing has happened.
// A decision compares times with the clock only by the methods of Moments. These methods note the times that
// have not come yet. So the first of the noted times is when the next decision may differ. Most decisions can wait
// for the poll after that time. What cannot is compared by Due: the first of these times wakes the core.
//
// A decision that is not reached notes nothing: an input, or another noted time, must come first. A time that a
// cycle has only set is noted where it is set.
type Moments struct {
	Next  time.Time // the first noted time; zero: none
	Moves bool      // a value differs in every second
	Wake  time.Time // when the next step is due: see Due
}

// farSecond is a Unix second that never comes.
const farSecond = 1 << 40

// At notes a time from which a decision may differ.
func (m *Moments) At(t time.Time) {
	if m.Next.IsZero() || t.Before(m.Next) {
		m.Next = t
	}
}

// WakeAt notes when a step is due.
func (m *Moments) WakeAt(t time.Time) {
	if t.Before(m.Wake) {
		m.Wake = t
	}
}

// AtSecond notes a Unix second from which a decision may differ.
func (m *Moments) AtSecond(t int64) {
	if t < farSecond {
		m.At(time.Unix(t, 0))
	}
}

// Reached reports whether a time has come.
func (m *Moments) Reached(now, t time.Time) bool {
	if now.Before(t) {
		m.At(t)
		return false
	}
	return true
}

// Due does what Reached does, for what cannot wait for a poll: the next step comes at that time.
func (m *Moments) Due(now, t time.Time) bool {
	if m.Reached(now, t) {
		return true
	}
	m.WakeAt(t)
	return false
}

// DueSecond does what Due does, for a Unix second.
func (m *Moments) DueSecond(now, t int64) bool {
	if m.ReachedSecond(now, t) {
		return true
	}
	m.WakeAt(time.Unix(t, 0))
	return false
}

// Passed reports whether a time is over.
func (m *Moments) Passed(now, t time.Time) bool { return m.Reached(now, t.Add(1)) }

// ReachedSecond reports whether a Unix second has come.
func (m *Moments) ReachedSecond(now, t int64) bool {
	if now < t {
		m.AtSecond(t)
		return false
	}
	return true
}

// Since returns a Unix second, or now once the second is over. It is for values for which the time after that
// does not matter.
func (m *Moments) Since(now, t int64) int64 {
	if m.ReachedSecond(now, t) {
		return now
	}
	return t
}

// Until returns a Unix second, or now once the second is over: from then on, the value moves.
func (m *Moments) Until(now, t int64) int64 {
	if t < farSecond && m.ReachedSecond(now, t+1) {
		m.Moves = true
		return now
	}
	return t
}
