package state

import (
	"maps"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
)

// No user can fill the event log, which is permanent, with repeated requests or with markers. For events that a
// user's requests cause, a job may have JobEvents at once and one per JobEvery. All events of a user together,
// those of jobs that are not adopted included, may be UserEvents at once and one per UserEvery. Beyond that, the
// sidecar writes only the last event, as soon as one is allowed or when the job ends. It says how many were left out.
const (
	JobEvents, JobEvery   = 10, 10 * time.Minute
	UserEvents, UserEvery = 50, time.Minute
)

// Told holds what was written of a job's events of some kinds.
type Told struct {
	Quota msg.Quota
	Muted muted
}

// told returns where events of a kind count, or nil if all are written. A user can cause without end those of requests,
// and those of jobs that Slurm does not start, that keep their nodes, fail, are late, or have others in their holds. The last event of each stays.
func (v *Shown) told(kind string) *Told {
	switch kind {
	case "change refused", "changed":
		return &v.Asking
	case "parked again", "nodes left alone", "limit raised", "intruder":
		return &v.Trouble
	case "failed":
		return &v.Tries
	case "delayed":
		return &v.Delays
	}
	return nil
}

// muted holds the last unwritten event of a job, or of a user's jobs that are not adopted.
type muted struct {
	Count  int // number of events not written, including this one; 0: none
	Kind   string
	At     time.Time
	Detail map[string]any
}

// mayWrite reports whether an event that a job's user caused may be written now.
func (c *Core) mayWrite(j *Job, t *Told) bool {
	its, ok := t.Quota.Take(c.Now, JobEvents, JobEvery)
	if !ok {
		return false
	}
	if ok = c.MayTell(j.UID); ok {
		t.Quota = its
	}
	return ok
}

// MayTell reports whether a further event or warning that a user caused may be written now, and counts it.
func (c *Core) MayTell(uid uint32) bool {
	user, ok := c.EventsOf[uid].Take(c.Now, UserEvents, UserEvery)
	if ok {
		if c.EventsOf == nil {
			c.EventsOf = map[uint32]msg.Quota{}
		}
		c.EventsOf[uid] = user
	}
	return ok
}

// WarnOf warns of a user's job that is not adopted, and writes an event, or keeps the event for later without a warning.
func (c *Core) WarnOf(uid uint32, line note, text, kind string, detail map[string]any) {
	last := c.MutedOf[uid]
	if !c.MayTell(uid) {
		if c.MutedOf == nil {
			c.MutedOf = map[uint32]muted{}
		}
		c.MutedOf[uid] = muted{last.Count + 1, kind, c.Now, detail}
		return
	}
	delete(c.MutedOf, uid)
	c.emit(0, last)
	line.Warn(text)
	c.emit(0, muted{1, kind, c.Now, detail})
}

// causedEvent writes an event that a job's user caused, or keeps it for later. It reports whether it wrote it.
func (c *Core) causedEvent(j *Job, t *Told, kind string, detail map[string]any) bool {
	if !c.mayWrite(j, t) {
		t.Muted = muted{t.Muted.Count + 1, kind, c.Now, detail}
		return false
	}
	c.unmute(j, t)
	c.emit(j.ID, muted{1, kind, c.Now, detail})
	return true
}

// unmute writes the last unwritten event of a job.
func (c *Core) unmute(j *Job, t *Told) {
	c.emit(j.ID, t.Muted)
	t.Muted = muted{}
}

// emit writes an event, with the number of those that were left out before it. It does nothing if there is none.
func (c *Core) emit(job int64, e muted) {
	if e.Count == 0 {
		return
	}
	if n := e.Count - 1; n > 0 {
		e.Detail = maps.Clone(e.Detail)
		e.Detail["suppressed"] = n
	}
	c.Emit(msg.AddEvent{Job: job, At: e.At, Kind: e.Kind, Detail: e.Detail})
}

// UnmuteAll writes what is allowed by now, and removes users without recent events.
func UnmuteAll(c *Core) {
	for _, j := range c.Active {
		for _, t := range []*Told{&j.Asking, &j.Trouble, &j.Tries, &j.Delays} {
			muted := t.Muted.Count > 0
			if c.Moves = c.Moves || muted; muted && c.mayWrite(j, t) {
				c.unmute(j, t)
			}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.MutedOf)) {
		if c.Moves = true; c.MayTell(uid) {
			c.emit(0, c.MutedOf[uid])
			delete(c.MutedOf, uid)
		}
	}
	maps.DeleteFunc(c.EventsOf, func(_ uint32, q msg.Quota) bool { return !time.Time(q).After(c.Now) })
}
