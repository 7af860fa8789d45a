package bag

import (
	"errors"
	"slices"
	"strings"
)

// share is a part of a bag that the leader works off: all of it, or the tasks that a campaign has leased to it.
type share struct {
	number  int
	base    int // of its tasks' indices in the bag
	journal *Journal
	state   *State
	owed    []entry
	dirty   bool // something was written since it was synced
	leaving bool // no task is leased any more: it is given back once none runs
	taken   bool // by another leader: what ends now comes late
}

// idle reports whether the leader is done with the share.
func (s *share) idle() bool {
	return s.state.Over() || (s.leaving || s.taken) && len(s.state.leases) == 0
}

// share returns the share of a task.
func (l *Leader) share(task int) *share {
	at := slices.IndexFunc(l.shares, func(s *share) bool { return task >= s.base && task-s.base < len(s.state.tasks) })
	if at < 0 {
		return nil
	}
	return l.shares[at]
}

// peek returns the share of the task to lease next, and the task's place in it.
func (l *Leader) peek() (*share, int, bool) {
	for _, s := range l.shares {
		if s.leaving || s.taken {
			continue
		}
		if i, ok := s.state.Peek(); ok {
			return s, i, true
		}
	}
	return nil, 0, false
}

// done returns how many tasks of the shares were done.
func (l *Leader) done() (n int) {
	for _, s := range l.shares {
		n += s.state.done
	}
	return n + len(l.past)
}

// running returns how many tasks run.
func (l *Leader) running() (n int) {
	for _, s := range l.shares {
		n += len(s.state.leases)
	}
	return n
}

// owing returns how many records are not written yet.
func (l *Leader) owing() (n int) {
	for _, s := range l.shares {
		n += len(s.owed)
	}
	return n
}

// flush writes what is owed, and reports whether there was something.
func (l *Leader) flush() (wrote bool) {
	l.mu.Lock()
	shares := slices.Clone(l.shares)
	l.mu.Unlock()
	for _, s := range shares {
		wrote = l.flushShare(s) || wrote
	}
	return wrote
}

func (l *Leader) flushShare(s *share) bool {
	l.mu.Lock()
	owed, taken := slices.Clone(s.owed), s.taken
	l.mu.Unlock()
	if len(owed) == 0 || taken && l.campaign == nil {
		return false
	}
	err := s.record(owed, l.campaign != nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrTaken):
		l.lose(s, owed, err)
		return false
	case err != nil:
		if l.blocked == nil {
			l.block(err)
		}
		return false
	}
	s.owed, s.dirty = s.owed[len(owed):], true
	if l.blocked != nil {
		l.Say("the journal can be written again")
		l.blocked = nil
	}
	l.lease()
	return true
}

// record writes what is owed. If the share was taken over, late ends may be written, to be counted.
func (s *share) record(owed []entry, late bool) error {
	records := make([]Record, len(owed))
	for i, e := range owed {
		records[i] = e.Record
	}
	err := s.journal.Check()
	switch {
	case err == nil:
		for _, e := range owed {
			for _, f := range e.files {
				place(f[0], f[1])
			}
		}
	case !late || !errors.Is(err, ErrTaken):
		return err
	}
	return errors.Join(err, s.journal.Append(records))
}

// lose notes that another leader has taken a share over.
func (l *Leader) lose(s *share, owed []entry, err error) {
	s.taken = true
	if l.campaign == nil {
		l.taken = true
		l.Say("%v: this one ends", err)
		l.checkOver()
		return
	}
	for _, e := range owed { // another run's output and checkpoint count
		for _, f := range e.files {
			if strings.HasSuffix(f[0], "."+e.run) {
				place(f[0], "")
			}
		}
	}
	s.owed = s.owed[len(owed):]
}

// sync makes what was written survive the machine.
func (l *Leader) sync() (left bool) {
	l.mu.Lock()
	shares := slices.Clone(l.shares)
	l.mu.Unlock()
	for _, s := range shares {
		if s.dirty { // only this goroutine touches it
			s.dirty = s.journal.Sync() != nil
			left = left || s.dirty
		}
	}
	return left
}
