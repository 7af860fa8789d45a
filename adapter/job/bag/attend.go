package bag

import (
	"errors"
	"slices"
	"time"
)

// mostSetbacks is the number of setbacks, one after the other, after which a cluster is left out.
const mostSetbacks = 5

// OutFor returns the time for which a cluster is left out of a campaign when that happens for the n-th time, n from 1 on: a
// minute, then twice as long each time, up to an hour.
func OutFor(n int) time.Duration { return min(time.Minute<<min(max(n-1, 0), 10), time.Hour) }

// outage says whether a campaign's leader leaves its cluster out: because workers are lost one after the other, or because no task
// has ever ended well there, and several have failed.
type outage struct {
	proven   bool // a task has ended well
	setbacks int  // one after the other
	until    time.Time
	times    int // it was left out
	why      string
}

func (o outage) isOut(now time.Time) bool { return now.Before(o.until) }

// setback notes that something went wrong on this cluster. After several, it is left out for a while, each time for longer.
func (l *Leader) setback(why string) {
	o := &l.out
	if l.campaign == nil || o.isOut(time.Now()) {
		return
	}
	if o.setbacks++; o.setbacks < mostSetbacks {
		return
	}
	o.setbacks, o.times, o.why = 0, o.times+1, why
	o.until = time.Now().Add(OutFor(o.times))
	for _, s := range l.shares {
		s.leaving = true
	}
	l.Say("%d setbacks one after the other, at last: %s. Cluster %s takes no tasks for %v", mostSetbacks, why, l.campaign.cluster, OutFor(o.times))
}

// LeadCampaign starts to work off the campaign that Join has joined.
func LeadCampaign(o Options, c *Campaign) *Leader {
	o.Collect = c.Collect
	return begun(&Leader{Options: o, campaign: c})
}

// attend keeps the leases of a campaign: it shows a sign of life, gives shares back, and leases others. It returns when it has to
// be called again at the latest.
func (l *Leader) attend() time.Duration {
	c, now := l.campaign, time.Now()
	err := l.shed()
	hungry := l.hungry()
	pause := c.pace.sign
	if hungry && len(c.free)+len(c.fresh) == 0 {
		pause = c.pace.idle
	}
	if now.Sub(c.looked) >= pause {
		err = errors.Join(err, c.look(now))
		l.yield(now)
	}
	for l.hungry() {
		s, failed := c.take(now)
		if err = errors.Join(err, failed); s == nil {
			break
		}
		l.mu.Lock()
		l.shares = append(l.shares, s)
		l.lease()
		l.mu.Unlock()
	}
	if sign := l.sign(now); now.Sub(c.beaten) >= c.pace.sign || sign.Slots != c.me.Slots || sign.Idle != c.me.Idle || sign.Out != c.me.Out {
		err = errors.Join(err, c.show(now, sign))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && err.Error() != l.failing {
		l.Say("%v", err)
	}
	if l.failing = ""; err != nil {
		l.failing = err.Error()
	}
	if c.isOver() {
		l.ending.Do(func() { close(l.over) })
	}
	return pause
}

// hungry reports whether the leader wants another share: less than one task for each slot waits.
func (l *Leader) hungry() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots == 0 || l.blocked != nil || l.late || l.out.isOut(time.Now()) {
		return false
	}
	stock := 0
	for _, s := range l.shares {
		if !s.leaving && !s.taken {
			stock += s.state.waiting()
		}
	}
	return stock < l.slots
}

// sign returns the sign of life to show.
func (l *Leader) sign(now time.Time) sign {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := sign{Slots: l.slots}
	if l.out.isOut(now) {
		s.Out, s.Why, s.Slots = seconds(l.out.until), l.out.why, 0
	}
	s.Idle = s.Slots > l.running()
	return s
}

// yield gives shares back to leaders that have nothing to do: those that wait, and those with more tasks than run next, once the
// tasks that run have ended.
func (l *Leader) yield(now time.Time) {
	c := l.campaign
	if len(c.free)+len(c.fresh) > 0 || !c.idle(now) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.shares {
		if n := s.state.waiting(); n > l.slots || n > 0 && len(s.state.leases) == 0 {
			s.leaving = true
		}
	}
}

// shed closes the shares that the leader is done with.
func (l *Leader) shed() (err error) {
	l.mu.Lock()
	var idle []*share
	for _, s := range l.shares {
		if s.idle() && len(s.owed) == 0 {
			idle = append(idle, s)
		}
	}
	l.shares = slices.DeleteFunc(l.shares, func(s *share) bool { return slices.Contains(idle, s) })
	for _, s := range idle {
		l.past = append(l.past, s.state.took()...)
	}
	l.mu.Unlock()
	for _, s := range idle {
		err = errors.Join(err, l.release(s))
	}
	return err
}

// release closes a share, and gives it back if tasks are left.
func (l *Leader) release(s *share) (err error) {
	if !s.taken && !s.state.Over() {
		err = s.journal.Check()
		if err == nil {
			err = s.journal.Append([]Record{{Kind: Left, At: seconds(time.Now())}})
		}
	}
	if errors.Is(err, ErrTaken) {
		err = nil
	}
	l.campaign.leave(s, time.Now())
	return errors.Join(err, s.journal.Sync(), s.journal.Close())
}

// giveUp gives all shares back, and returns how the campaign stands.
func (l *Leader) giveUp() (Summary, error) {
	l.mu.Lock()
	shares, blocked := slices.Clone(l.shares), l.blocked
	l.mu.Unlock()
	err := blocked
	for _, s := range shares {
		err = errors.Join(err, l.release(s))
	}
	l.campaign.end()
	s, failed := Read(l.Dir)
	if failed != nil {
		return Summary{}, errors.Join(err, failed)
	}
	return s.Summary(time.Now()), err
}
