package pluginhost

import (
	"time"

	"github.com/sirupsen/logrus"
)

// What is done about faults: after faultsInARow the plugin is put aside for
// firstRest, after each further one for twice as long as before.
const (
	faultsInARow = 3
	firstRest    = 30 * time.Second
	longestRest  = time.Hour
)

// record is how a strategy has done.
type record struct {
	plans   int // that were used
	faults  int
	fallen  int // cycles in which the fallback planned in its place
	last    string
	lastAt  time.Time
	inARow  int
	rest    time.Duration // the last one's length
	aside   bool
	until   time.Time      // of being put aside
	seconds float64        // of the last plan
	won     map[string]int // how many pools each strategy planned that it asked
}

// count adds what a cycle counted.
func (r *record) count(won map[string]int) {
	if r.won == nil && len(won) > 0 {
		r.won = map[string]int{}
	}
	for name, n := range won {
		r.won[name] += n
	}
}

// forgive ends a rest; the counts stay.
func (r *record) forgive() {
	r.inARow, r.rest, r.aside, r.until = 0, 0, false, time.Time{}
}

// record returns the one of that name; the mutex is held.
func (u *Slot) record(name string) *record {
	r := u.records[name]
	if r == nil {
		r = &record{}
		u.records[name] = r
	}
	return r
}

// fault notes that the plugin in use has failed, ends its process and sees to
// another one; the mutex is held. What it writes into the event log may be added to
// until the cycle ends.
func (s *selection) fault(err error) (detail map[string]any) {
	u, m := s.slot, s.slot.m
	r := u.record(s.Name)
	r.faults++
	r.inARow++
	r.last, r.lastAt = err.Error(), time.Now()
	detail = map[string]any{u.field: s.Name, "version": s.version, "fault": r.last, "faults": r.faults, u.instead: u.fallback}
	m.log.WithFields(logrus.Fields{u.field: s.Name, "faults": r.faults}).Warnf("a %s failed, %s %s in its place: %s", u.kind, u.fallback, u.does, r.last)
	m.event(u.kind+" fault", detail)
	if p := s.process; p != nil {
		s.process = nil
		m.work.Go(p.end)
	}
	if r.inARow >= faultsInARow {
		r.rest = min(max(2*r.rest, firstRest), longestRest)
		r.aside, r.until = true, r.lastAt.Add(r.rest)
		m.event(u.kind+" put aside", map[string]any{u.field: s.Name, "faults_in_a_row": r.inARow, "seconds": int(r.rest.Seconds()), u.instead: u.fallback})
		m.log.WithField(u.field, s.Name).Warnf("put aside for %v after %d faults in a row; evosctl strategy reload brings it back at once", r.rest, r.inARow)
		return detail
	}
	m.restart(s)
	return detail
}

// restart starts a process for the selection in the background; the mutex is held.
func (m *Manager) restart(s *selection) {
	if s.ours || s.ended || m.ctx.Err() != nil {
		return
	}
	s.ours = true
	m.work.Go(func() {
		u := s.slot
		p, err := u.start(m.ctx, s.file, s.Parameters)
		m.mu.Lock()
		defer m.mu.Unlock()
		s.ours = false
		switch {
		case err == nil && (s.ended || m.ctx.Err() != nil):
			m.work.Go(p.end)
		case s.ended || m.ctx.Err() != nil:
		case err == nil:
			s.process, s.values, s.version = p, p.values, p.description.Version
			m.event(u.kind+" back", map[string]any{u.field: s.Name, "version": s.version})
			m.log.WithField(u.field, s.Name).Infof("the %s is back", u.kind)
		default:
			s.fault(err)
		}
	})
}
