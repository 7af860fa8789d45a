package core

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Changes of Slurm take their time: slurmctld may let a command wait for seconds, while its
// backfill scheduler holds the locks, and nobody's growth is to wait for the StartTime of
// somebody who has hours. There is no queue: what is to be done is found anew from the
// present state each time something has ended, most urgent first, and asked for if there
// is room. A job has one change at a time.

const (
	// atOnce bounds how many tasks are under way at once; holds may take half of that, so
	// that there is always room for starts, growths and shrinks.
	atOnce = 16
	// A task that runs a process of a user (see handsOf) lasts as long as that user likes, up
	// to its deadline. It takes none of these, but one of its user's own: userAtOnce of
	// usersAtOnce, the last newcomers of which are for users who have none under way.
	userAtOnce  = 8
	usersAtOnce = 64
	newcomers   = 16
	// chorePause is the least time between two of those that can wait (far holds, and
	// the plan's mirror): after each, slurmctld's scheduler holds the locks.
	chorePause = 250 * time.Millisecond
	// againAfter is when what failed is tried again, unless its job says.
	againAfter = 2 * time.Second
)

// work is what was asked for and has not come out yet.
type work struct {
	last    int64                   // ID of a task
	pending map[int64]func(Outcome) // what follows from the outcome, by task
	lent    map[int64]uint32        // users in whose hands tasks are
	hands   map[uint32]int          // the number of these, by user
	chore   bool                    // one of what can wait is under way
	chored  time.Time               // when the last one ended
	keys    map[string]bool         // of what is under way and is of no job
	retry   map[string]time.Time    // and is not tried before
}

func newWork() work {
	return work{keys: map[string]bool{}, retry: map[string]time.Time{}, pending: map[int64]func(Outcome){}, lent: map[int64]uint32{}, hands: map[uint32]int{}}
}

// room reports whether one more change may begin.
func (w *work) room() bool { return len(w.pending)-len(w.lent) < atOnce }

// roomForHolds is the same for one that starts, growths and shrinks go before.
func (w *work) roomForHolds() bool { return len(w.pending)-len(w.lent) < atOnce/2 }

// roomFor reports whether one more task may begin that runs a process of a user.
func (w *work) roomFor(uid uint32) bool {
	if own := w.hands[uid]; own > 0 {
		return own < userAtOnce && len(w.lent) < usersAtOnce-newcomers
	}
	return len(w.lent) < usersAtOnce
}

// lend counts a task that runs a process of a user.
func (w *work) lend(id int64, uid uint32) {
	w.lent[id] = uid
	w.hands[uid]++
}

// takeBack undoes lend.
func (w *work) takeBack(id int64) {
	uid, lent := w.lent[id]
	if !lent {
		return
	}
	delete(w.lent, id)
	if w.hands[uid]--; w.hands[uid] == 0 {
		delete(w.hands, uid)
	}
}

// handsOf is the user of the process that a command runs in the user's name, if it does:
// the user can stop that process, and write what it prints.
func handsOf(do Command) (uid uint32, lent bool) {
	switch do := do.(type) {
	case Grow:
		return do.As, !do.Own
	case Update:
		return do.As, do.As != 0
	case ReadRequest:
		return do.UID, !do.Own && do.Growth > 0
	}
	return 0, false
}

// settled takes over what became of a task.
func (c *Core) settled(o Outcome) {
	then, known := c.work.pending[o.Task]
	if !known {
		return
	}
	c.mayUpdate(!o.Bare)
	o.Result = c.resultIn(o.Result)
	delete(c.work.pending, o.Task)
	c.work.takeBack(o.Task)
	then(o)
}

// ask asks for a task. Until its outcome is there the job, if there is one, is busy; what is
// of no job has a key by which it is asked for once at a time, and after a failure not at
// once again: then it reports false.
func (c *Core) ask(j *job, key string, t Task, then func(Outcome)) bool {
	w := &c.work
	if j != nil {
		j.busy = true
	} else if w.keys[key] || c.now.Before(w.retry[key]) {
		return false
	} else {
		w.keys[key] = true
	}
	w.last++
	t.ID = w.last
	if t.Intent != nil {
		t.Intent.ID = t.ID
	}
	if uid, lent := handsOf(t.Command); lent {
		w.lend(t.ID, uid)
	}
	w.pending[t.ID] = func(o Outcome) {
		switch {
		case j != nil:
			j.busy = false
		case o.Err != nil:
			w.retry[key] = c.now.Add(againAfter)
			delete(w.keys, key)
		default:
			delete(w.retry, key)
			delete(w.keys, key)
		}
		then(o)
	}
	c.emit(t)
	return true
}

// do asks for an action on a job. The intent is written before, and settled with the
// outcome after. A failed action is tried again later, less and less often.
func (c *Core) do(j *job, action, detail string, do Command, then func(Outcome)) {
	begun := c.now
	intent := &row.Intent{Job: j.ID, Action: action, Detail: detail, At: c.now}
	c.ask(j, "", Task{Intent: intent, Command: do}, func(o Outcome) {
		if errors.Is(o.Err, ErrNotWritten) {
			j.retryAt = c.now.Add(time.Second)
			j.reason = because(whyDatabaseNotWritable)
			if j.State == row.Starting { // nobody has told Slurm
				j.State = row.Queued
				c.save(j)
			}
			return
		}
		j.touched = c.now
		entry := c.logJob(j).WithField("action", action).WithField("seconds", c.now.Sub(begun).Seconds())
		text := ""
		if o.Err != nil {
			text = o.Err.Error()
		}
		c.emit(Settle{Intent: o.Task, At: c.now, Err: text})
		if o.Err != nil {
			j.failed(action, o.Err, c.now, c.wall)
			c.event(j, "failed", map[string]any{"action": action, "detail": detail, "error": text})
			entry.WithError(o.Err).Warn("an action failed; it will be tried again")
		} else {
			j.failures, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
			entry.Debug(detail)
		}
		then(o)
		c.nextCycle = c.now // see what came of it
	})
}

// chore asks for what can wait: one at a time, and not while slurmctld would let it
// wait (ErrBackfilling). It reports false where it cannot begin yet.
func (c *Core) chore(kind *allowance, j *job, do Command, then func(Outcome)) bool {
	w := &c.work
	if w.chore || !w.roomForHolds() || c.now.Before(w.nextChore(c.pace.gated)) || !kind.take(c.now, c.cfg.Slurm.Share) {
		c.quiet.putOff = true
		return false
	}
	w.chore = true
	return c.ask(j, "", c.gently(do), func(o Outcome) {
		w.chore, w.chored = false, c.now
		if errors.Is(o.Err, ErrBackfilling) {
			w.chored = w.chored.Add(againAfter)
			return
		}
		then(o)
	})
}

// gently is a task that does not wait for slurmctld's backfill scheduler, where commands
// cost so much that it matters.
func (c *Core) gently(do Command) Task { return Task{Gently: c.pace.gated, Command: do} }

// nextChore is the earliest time of the next chore.
func (w *work) nextChore(gated bool) time.Time {
	if !gated {
		return w.chored
	}
	return w.chored.Add(chorePause)
}

// An allowance bounds how often slurmctld is bothered with what can wait, and lets
// some of it by at once.
type allowance struct {
	left float64
	at   time.Time
}

const (
	// choreCost is what a far hold or a mirrored start is taken to cost slurmctld: 1 ms
	// itself, and 20 ms in its scheduler, which it makes start over.
	choreCost = 20 * time.Millisecond
	// choresSaved is how many may come at once after a quiet time.
	choresSaved = 50
)

// take uses the allowance up by one, if there is one left. Half of share, a part of
// slurmctld's time, may go into it.
func (a *allowance) take(now time.Time, share float64) bool {
	if a.at.IsZero() {
		a.left = choresSaved
	} else if passed := now.Sub(a.at); passed > 0 {
		a.left = min(a.left+passed.Seconds()*share/2/choreCost.Seconds(), choresSaved)
	}
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}
