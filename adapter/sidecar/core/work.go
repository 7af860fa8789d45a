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
	last    int64                // ID of a task
	pending map[int64]*Pending   // tasks under way, by ID
	lent    map[int64]uint32     // users in whose hands tasks are
	hands   map[uint32]int       // the number of these, by user
	chore   bool                 // one of what can wait is under way
	chored  time.Time            // when the last one ended
	keys    map[string]bool      // of what is under way and is of no job
	retry   map[string]time.Time // and is not tried before
}

func newWork() work {
	return work{keys: map[string]bool{}, retry: map[string]time.Time{}, pending: map[int64]*Pending{}, lent: map[int64]uint32{}, hands: map[uint32]int{}}
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

// settleBy is what follows from the outcome of a task, by its kind. The job is nil if the task belongs to none.
var settleBy = [numberOfKinds]func(c *Core, j *job, p *Pending, o Outcome){
	KindDetach:       (*Core).settleDetach,
	KindEnforce:      (*Core).settleEnforce,
	KindWarn:         (*Core).settleWarn,
	KindShape:        (*Core).settleShape,
	KindStart:        (*Core).settleStart,
	KindPark:         (*Core).settlePark,
	KindEvict:        (*Core).settleEvict,
	KindGrow:         (*Core).settleGrow,
	KindShrink:       (*Core).settleShrink,
	KindExtend:       (*Core).settleExtend,
	KindRewrite:      (*Core).settleRewrite,
	KindAccrual:      (*Core).settleAccrual,
	KindRequest:      (*Core).settleRequest,
	KindScript:       (*Core).settleScript,
	KindLimits:       (*Core).settleLimits,
	KindTimeUsed:     (*Core).settleTimeUsed,
	KindLengthen:     (*Core).settleLengthen,
	KindEnd:          (*Core).settleEnd,
	KindLinkEnd:      (*Core).settleLinkEnd,
	KindCancelBeside: (*Core).settleCancelBeside,
	KindSendAway:     (*Core).settleSendAway,
	KindReconfigure:  (*Core).settleReconfigure,
	KindLeave:        (*Core).settleLeave,
	KindPowerUp:      (*Core).settlePowerUp,
	KindKeepUp:       (*Core).settleKeepUp,
	KindReadyLink:    (*Core).settleReadyLink,
	KindMirror:       (*Core).settleMirror,
	KindShapeAhead:   (*Core).settleShapeAhead,
	KindAdjustHold:   (*Core).settleAdjustHold,
	KindCreateHold:   (*Core).settleCreateHold,
	KindDeleteHold:   (*Core).settleDeleteHold,
	KindDemand:       func(*Core, *job, *Pending, Outcome) {}, // once: at the deadline the nodes go anyway
}

// settled takes over what became of a task.
func (c *Core) settled(o Outcome) {
	p, known := c.work.pending[o.Task]
	if !known {
		return
	}
	c.mayUpdate(!o.UpdatesNeedAccount)
	o.Result = c.resultIn(o.Result)
	delete(c.work.pending, o.Task)
	c.work.takeBack(o.Task)
	j := c.jobOf(p)
	c.finish(j, p, o.Err)
	intent := p.Task.Intent
	if intent != nil && !c.settleIntent(j, intent, o) {
		return
	}
	if p.Chore && errors.Is(o.Err, ErrBackfilling) {
		return
	}
	if j != nil || p.Job == 0 {
		settleBy[p.Kind](c, j, p, o)
	}
	if intent != nil {
		c.nextCycle = c.now // see what came of it
	}
}

// jobOf returns the job that is busy with a task; nil: none, or it ended long ago.
func (c *Core) jobOf(p *Pending) *job {
	if p.Job == 0 {
		return nil
	}
	for _, jobs := range [][]*job{c.active, c.ended} {
		for _, j := range jobs {
			if j.ID == p.Job {
				return j
			}
		}
	}
	return nil
}

// finish takes note that a task has come out.
func (c *Core) finish(j *job, p *Pending, err error) {
	w := &c.work
	switch {
	case j != nil:
		j.busy = false
	case p.Job != 0: // its job ended long ago
	case err != nil:
		w.retry[p.Key] = c.now.Add(againAfter)
		delete(w.keys, p.Key)
	default:
		delete(w.retry, p.Key)
		delete(w.keys, p.Key)
	}
	if p.Chore {
		if w.chore, w.chored = false, c.now; errors.Is(err, ErrBackfilling) {
			w.chored = w.chored.Add(againAfter)
		}
	}
}

// settleIntent writes what became of an action on a job, and returns false if nothing was done. The job is nil
// if it ended long ago.
func (c *Core) settleIntent(j *job, intent *row.Intent, o Outcome) bool {
	if errors.Is(o.Err, ErrNotWritten) {
		if j != nil {
			c.notWritten(j)
		}
		return false
	}
	text := ""
	if o.Err != nil {
		text = o.Err.Error()
	}
	c.emit(Settle{Intent: o.Task, At: c.now, Err: text})
	if j == nil {
		return true
	}
	j.touched = c.now
	entry := c.logJob(j).WithField("action", intent.Action).WithField("seconds", c.now.Sub(intent.At).Seconds())
	if o.Err != nil {
		j.failed(intent.Action, o.Err, c.now, c.wall)
		c.event(j, "failed", map[string]any{"action": intent.Action, "detail": intent.Detail, "error": text})
		entry.WithError(o.Err).Warn("an action failed; it will be tried again")
	} else {
		j.failures, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
		entry.Debug(intent.Detail)
	}
	return true
}

// notWritten is called when the intent of an action on a job could not be written.
func (c *Core) notWritten(j *job) {
	j.retryAt = c.now.Add(time.Second)
	j.reason = because(whyDatabaseNotWritable)
	if j.State == row.Starting { // Slurm has not been asked
		j.State = row.Queued
		c.save(j)
	}
}

// beginTask asks for a task. Until its outcome is there the job, if there is one, is busy. A task that belongs
// to no job has a key: beginTask returns false while a task with that key is under way, and shortly after one
// failed.
func (c *Core) beginTask(j *job, p Pending) bool {
	w := &c.work
	if j != nil {
		j.busy, p.Job = true, j.ID
	} else if w.keys[p.Key] || c.now.Before(w.retry[p.Key]) {
		return false
	} else {
		w.keys[p.Key] = true
	}
	w.last++
	p.Task.ID = w.last
	if p.Task.Intent != nil {
		p.Task.Intent.ID = w.last
	}
	if uid, lent := handsOf(p.Task.Command); lent {
		w.lend(w.last, uid)
	}
	w.pending[w.last] = &p
	c.emit(p.Task)
	return true
}

// ask asks for a task: see beginTask.
func (c *Core) ask(j *job, key string, kind Kind, t Task, args Args) bool {
	return c.beginTask(j, Pending{Task: t, Kind: kind, Key: key, Args: args})
}

// do asks for an action on a job. The intent is written before, and settled with the
// outcome after. A failed action is tried again later, less and less often.
func (c *Core) do(j *job, action, detail string, kind Kind, do Command, args Args) {
	intent := &row.Intent{Job: j.ID, Action: action, Detail: detail, At: c.now}
	c.beginTask(j, Pending{Task: Task{Intent: intent, Command: do}, Kind: kind, Args: args})
}

// chore asks for what can wait: one at a time, and not while slurmctld would let it
// wait (ErrBackfilling). It reports false where it cannot begin yet.
func (c *Core) chore(from *allowance, j *job, kind Kind, do Command, args Args) bool {
	w := &c.work
	if w.chore || !w.roomForHolds() || c.now.Before(w.nextChore(c.pace.gated)) || !from.take(c.now, c.cfg.Slurm.Share) {
		c.quiet.putOff = true
		return false
	}
	w.chore = true
	return c.beginTask(j, Pending{Task: c.gently(do), Kind: kind, Chore: true, Args: args})
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
