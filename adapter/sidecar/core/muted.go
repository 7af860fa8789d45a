package core

import (
	"maps"
	"time"
)

// Nobody can fill the event log, which stays for good, by asking again and again: of what a
// user causes by asking, a job has jobEvents events at once and one each jobEvery, and a
// user's jobs userEvents together and one each userEvery. Of those beyond, the last one is
// written as soon as one may be, or when the job ends; it says how many were left out.
const (
	jobEvents, jobEvery   = 10, 10 * time.Minute
	userEvents, userEvery = 50, time.Minute
)

// byAsking has the kinds of events that a user causes by asking.
var byAsking = map[string]bool{"change refused": true, "changed": true}

// muted is the last event of a job that was not written.
type muted struct {
	count  int // of those not written, this one included; 0: there is none
	kind   string
	at     time.Time
	detail map[string]any
}

// quota counts events by the time at which all are forgotten; zero: none was written lately.
type quota time.Time

// take reports whether one more event may be written, of some at once and one in each interval.
func (q quota) take(now time.Time, most int, every time.Duration) (quota, bool) {
	after := Later(time.Time(q), now).Add(every)
	if after.Sub(now) > time.Duration(most)*every {
		return q, false
	}
	return quota(after), true
}

// mayWrite reports whether an event that a job's user has caused may be written now.
func (c *Core) mayWrite(j *job) bool {
	its, ok := j.events.take(c.now, jobEvents, jobEvery)
	if !ok {
		return false
	}
	user, ok := c.eventsOf[j.UID].take(c.now, userEvents, userEvery)
	if ok {
		if c.eventsOf == nil {
			c.eventsOf = map[uint32]quota{}
		}
		j.events, c.eventsOf[j.UID] = its, user
	}
	return ok
}

// askedEvent writes an event that a job's user has caused, or keeps it in mind.
func (c *Core) askedEvent(j *job, kind string, detail map[string]any) {
	if !c.mayWrite(j) {
		j.muted = muted{j.muted.count + 1, kind, c.now, detail}
		return
	}
	c.unmute(j)
	c.emit(AddEvent{Job: j.ID, At: c.now, Kind: kind, Detail: detail})
}

// unmute writes the last event of a job that was not written.
func (c *Core) unmute(j *job) {
	if j.muted.count == 0 {
		return
	}
	detail := maps.Clone(j.muted.detail)
	if n := j.muted.count - 1; n > 0 {
		detail["suppressed"] = n
	}
	c.emit(AddEvent{Job: j.ID, At: j.muted.at, Kind: j.muted.kind, Detail: detail})
	j.muted = muted{}
}

// unmuteAll writes what may be written by now, and forgets users who caused nothing lately.
func (c *Core) unmuteAll() {
	for _, j := range c.active {
		if j.muted.count > 0 && c.mayWrite(j) {
			c.unmute(j)
		}
	}
	maps.DeleteFunc(c.eventsOf, func(_ uint32, q quota) bool { return !time.Time(q).After(c.now) })
}
