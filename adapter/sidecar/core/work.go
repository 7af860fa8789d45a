package core

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Changes of Slurm take time: slurmctld may let a command wait for seconds while its backfill scheduler holds
// the locks. A growth must not wait for the StartTime of a job that has hours left. There is no queue: each
// time a task has ended, the core derives the next tasks from the current state, most urgent first, and starts
// them if there is room. A job has one change at a time.

const (
	// atOnce bounds how many tasks run at once. Holds may take half of that, so that there is always room for
	// starts, growths, and shrinks.
	atOnce = 16
	// A task that runs a process of a user (see handsOf) lasts as long as that user likes, up to its deadline. It
	// does not count in atOnce, but against its user: userAtOnce of usersAtOnce. The last `newcomers` places are
	// for users without such a task.
	userAtOnce  = 8
	usersAtOnce = 64
	newcomers   = 16
	// chorePause is the least time between two chores (far holds, and the plan's mirror): after each, slurmctld's
	// scheduler holds the locks.
	chorePause = 250 * time.Millisecond
	// againAfter is the time until a failed task is tried again, unless its job sets another one.
	againAfter = 2 * time.Second
)

// work holds the tasks without an outcome.
type work struct {
	last    int64                // ID of the last task
	pending map[int64]*Pending   // tasks under way, by ID
	lent    map[int64]uint32     // tasks that run a process of a user, with that user
	hands   map[uint32]int       // number of these tasks, by user
	chore   bool                 // a chore is under way
	chored  time.Time            // when the last chore ended
	keys    map[string]bool      // keys of running tasks without a job
	retry   map[string]time.Time // earliest next attempt, by key
}

func newWork() work {
	return work{keys: map[string]bool{}, retry: map[string]time.Time{}, pending: map[int64]*Pending{}, lent: map[int64]uint32{}, hands: map[uint32]int{}}
}

// room reports whether one more change may begin.
func (w *work) room() bool { return len(w.pending)-len(w.lent) < atOnce }

// roomForHolds does what room does, for tasks that starts, growths, and shrinks precede.
func (w *work) roomForHolds() bool { return len(w.pending)-len(w.lent) < atOnce/2 }

// roomFor reports whether one more task that runs a process of a user may begin.
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

// handsOf returns the user in whose name a command runs a process, if it does: that user can stop the process,
// and write what it prints.
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

// settleBy holds the settle function of each kind. The job is nil if the task belongs to none.
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
	KindDemand:       func(*Core, *job, *Pending, Outcome) {}, // no retry: at the deadline the nodes go anyway
}

// settled processes the outcome of a task.
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
		c.nextCycle = c.now // see what it changed
	}
}

// jobOf returns the job that is busy with a task, or nil if there is none or it ended long ago.
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

// finish records that a task has ended.
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

// settleIntent records the outcome of an action on a job, and returns false if nothing was done. The job is
// nil if it ended long ago.
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
		entry.WithError(o.Err).Warn("action failed, will retry")
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

// beginTask starts a task. The job, if there is one, is busy until the outcome arrives. A task that belongs to
// no job has a key: beginTask returns false while a task with that key is under way, and shortly after one
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

// ask starts a task: see beginTask.
func (c *Core) ask(j *job, key string, kind Kind, t Task, args Args) bool {
	return c.beginTask(j, Pending{Task: t, Kind: kind, Key: key, Args: args})
}

// do starts an action on a job. The intent is written before it, and settled with the outcome after it. A
// failed action is tried again later, less and less often.
func (c *Core) do(j *job, action, detail string, kind Kind, do Command, args Args) {
	intent := &row.Intent{Job: j.ID, Action: action, Detail: detail, At: c.now}
	c.beginTask(j, Pending{Task: Task{Intent: intent, Command: do}, Kind: kind, Args: args})
}

// chore starts a task that can wait: one at a time, and not while slurmctld would let it wait
// (ErrBackfilling). It reports false if the task cannot begin yet.
func (c *Core) chore(from *allowance, j *job, kind Kind, do Command, args Args) bool {
	w := &c.work
	if w.chore || !w.roomForHolds() || c.now.Before(w.nextChore(c.pace.gated)) || !from.take(c.now, c.cfg.Slurm.Share) {
		c.quiet.putOff = true
		return false
	}
	w.chore = true
	return c.beginTask(j, Pending{Task: c.gently(do), Kind: kind, Chore: true, Args: args})
}

// gently returns a task that does not wait for slurmctld's backfill scheduler if commands cost so much that it
// matters.
func (c *Core) gently(do Command) Task { return Task{Gently: c.pace.gated, Command: do} }

// nextChore returns the earliest time of the next chore.
func (w *work) nextChore(gated bool) time.Time {
	if !gated {
		return w.chored
	}
	return w.chored.Add(chorePause)
}

// allowance bounds how often chores use slurmctld, and lets some of them through at once.
type allowance struct {
	left float64
	at   time.Time
}

const (
	// choreCost is the assumed cost of a far hold or a mirrored start for slurmctld: 1 ms itself, and 20 ms in its
	// scheduler, which must start over.
	choreCost = 20 * time.Millisecond
	// choresSaved is how many chores may come at once after a quiet time.
	choresSaved = 50
)

// take uses one unit of the allowance, if one is left. Chores may use half of share, a part of slurmctld's
// time.
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
