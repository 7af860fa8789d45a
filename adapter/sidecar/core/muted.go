package core

import (
	"maps"
	"time"
)

// No user can fill the event log, which is permanent, with repeated requests. For events that a user's
// requests cause, a job may have jobEvents at once and one per jobEvery. All jobs of a user together may have
// userEvents at once and one per userEvery. Beyond that, the sidecar writes only the last event, as soon as
// one is allowed or when the job ends. It says how many were left out.
const (
	jobEvents, jobEvery   = 10, 10 * time.Minute
	userEvents, userEvery = 50, time.Minute
)

// byAsking holds the kinds of events that a user causes by asking.
var byAsking = map[string]bool{"change refused": true, "changed": true}

// muted holds the last unwritten event of a job.
type muted struct {
	count  int // number of events not written, including this one; 0: none
	kind   string
	at     time.Time
	detail map[string]any
}

// quota counts events by the time at which all are forgotten; zero: none was written recently.
type quota time.Time

// take reports whether one more event may be written, with at most `most` at once and one per interval.
func (q quota) take(now time.Time, most int, every time.Duration) (quota, bool) {
	after := Later(time.Time(q), now).Add(every)
	if after.Sub(now) > time.Duration(most)*every {
		return q, false
	}
	return quota(after), true
}

// mayWrite reports whether an event that a job's user caused may be written now.
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

// askedEvent writes an event that a job's user caused, or keeps it for later.
func (c *Core) askedEvent(j *job, kind string, detail map[string]any) {
	if !c.mayWrite(j) {
		j.muted = muted{j.muted.count + 1, kind, c.now, detail}
		return
	}
	c.unmute(j)
	c.emit(AddEvent{Job: j.ID, At: c.now, Kind: kind, Detail: detail})
}

// unmute writes the last unwritten event of a job.
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

// unmuteAll writes what is allowed by now, and removes users without recent events.
func (c *Core) unmuteAll() {
	for _, j := range c.active {
		if j.muted.count > 0 && c.mayWrite(j) {
			c.unmute(j)
		}
	}
	maps.DeleteFunc(c.eventsOf, func(_ uint32, q quota) bool { return !time.Time(q).After(c.now) })
}
