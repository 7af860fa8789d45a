package state

import (
	"maps"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// No user can fill the event log, which is permanent, with repeated requests. For events that a user's
// requests cause, a job may have JobEvents at once and one per JobEvery. All jobs of a user together may have
// UserEvents at once and one per UserEvery. Beyond that, the sidecar writes only the last event, as soon as
// one is allowed or when the job ends. It says how many were left out.
const (
	JobEvents, JobEvery   = 10, 10 * time.Minute
	UserEvents, UserEvery = 50, time.Minute
)

// byAsking holds the kinds of events that a user causes by asking.
var byAsking = map[string]bool{"change refused": true, "changed": true}

// muted holds the last unwritten event of a job.
type muted struct {
	Count  int // number of events not written, including this one; 0: none
	Kind   string
	At     time.Time
	Detail map[string]any
}

// Quota counts events by the time at which all are forgotten; zero: none was written recently.
type Quota time.Time

// take reports whether one more event may be written, with at most `most` at once and one per interval.
func (q Quota) take(now time.Time, most int, every time.Duration) (Quota, bool) {
	after := msg.Later(time.Time(q), now).Add(every)
	if after.Sub(now) > time.Duration(most)*every {
		return q, false
	}
	return Quota(after), true
}

// mayWrite reports whether an event that a job's user caused may be written now.
func (c *Core) mayWrite(j *Job) bool {
	its, ok := j.Events.take(c.Now, JobEvents, JobEvery)
	if !ok {
		return false
	}
	user, ok := c.EventsOf[j.UID].take(c.Now, UserEvents, UserEvery)
	if ok {
		if c.EventsOf == nil {
			c.EventsOf = map[uint32]Quota{}
		}
		j.Events, c.EventsOf[j.UID] = its, user
	}
	return ok
}

// askedEvent writes an event that a job's user caused, or keeps it for later.
func (c *Core) askedEvent(j *Job, kind string, detail map[string]any) {
	if !c.mayWrite(j) {
		j.Muted = muted{j.Muted.Count + 1, kind, c.Now, detail}
		return
	}
	c.unmute(j)
	c.Emit(msg.AddEvent{Job: j.ID, At: c.Now, Kind: kind, Detail: detail})
}

// unmute writes the last unwritten event of a job.
func (c *Core) unmute(j *Job) {
	if j.Muted.Count == 0 {
		return
	}
	detail := maps.Clone(j.Muted.Detail)
	if n := j.Muted.Count - 1; n > 0 {
		detail["suppressed"] = n
	}
	c.Emit(msg.AddEvent{Job: j.ID, At: j.Muted.At, Kind: j.Muted.Kind, Detail: detail})
	j.Muted = muted{}
}

// UnmuteAll writes what is allowed by now, and removes users without recent events.
func UnmuteAll(c *Core) {
	for _, j := range c.Active {
		if j.Muted.Count == 0 {
			continue
		}
		if c.Moves = true; c.mayWrite(j) {
			c.unmute(j)
		}
	}
	maps.DeleteFunc(c.EventsOf, func(_ uint32, q Quota) bool { return !time.Time(q).After(c.Now) })
}
