package state

import (
	"errors"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
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
	// While slurmctld takes longer than slowAnswer, a user has userReads scripts and requests read at once.
	slowAnswer = 3 * time.Second
	userReads  = 2
	// chorePause is the least time between two chores (far holds, and the plan's mirror): after each, slurmctld's
	// scheduler holds the locks.
	chorePause = 250 * time.Millisecond
	// AgainAfter is the time until a failed task is tried again, unless its job sets another one.
	AgainAfter = 2 * time.Second
)

// work holds the tasks without an outcome.
type work struct {
	Last    int64                // ID of the last task
	Pending map[int64]*Pending   // tasks under way, by ID
	Lent    map[int64]uint32     // tasks that run a process of a user, with that user
	Hands   map[uint32]int       // number of these tasks, by user
	Reads   map[int64]Reading    // scripts and requests being read, by task, except those in Lent
	Latest  slurmctl.JobID       // the job of the last one begun
	InTurns bool                 // users take turns in this cycle: slurmctld is slow, or scripts waited in the last cycle
	PutOff  bool                 // a script waits in this cycle
	Chore   bool                 // a chore is under way
	Chored  time.Time            // when the last chore ended
	Keys    map[string]bool      // keys of running tasks without a job
	Retry   map[string]time.Time // earliest next attempt, by key
	Warn    []slurmctl.JobID     `codec:"-"` // Slurm jobs to signal in this step
}

// Reading is the read of a job's script or request.
type Reading struct {
	UID   uint32 // of the job's user
	Since time.Time
}

func NewWork() work {
	return work{Keys: map[string]bool{}, Retry: map[string]time.Time{}, Pending: map[int64]*Pending{}, Lent: map[int64]uint32{}, Hands: map[uint32]int{}, Reads: map[int64]Reading{}}
}

// Room reports whether one more change may begin.
func (w *work) Room() bool { return w.slots() < atOnce }

// RoomForHolds does what room does, for tasks that starts, growths, and shrinks precede.
func (w *work) RoomForHolds() bool { return w.slots() < atOnce/2 }

// slots returns how many slots are taken. Reads beyond their half do not count: nothing else waits for them.
func (w *work) slots() int {
	beyond := max(len(w.Reads)-atOnce/2, 0)
	return len(w.Pending) - len(w.Lent) - beyond
}

// RoomToRead reports whether one more request of a user's job may be read. Prompt reads may take all slots.
// While slurmctld is slow, reads take half of the slots at most, and each user's reads two.
func (c *Core) RoomToRead(uid uint32) bool {
	w := &c.Work
	if len(w.Pending)-len(w.Lent) >= atOnce {
		return false
	}
	if !c.ReadsSlowly() {
		return true
	}
	own := 0
	for _, r := range w.Reads {
		if r.UID == uid {
			own++
		}
	}
	return len(w.Reads) < atOnce/2 && own < userReads
}

// ReadsSlowly reports whether the last poll, or a read that is under way, shows that slurmctld is slow.
func (c *Core) ReadsSlowly() bool {
	if c.Pace.Ended.Sub(c.Pace.Begun) > slowAnswer {
		return true
	}
	for _, r := range c.Work.Reads {
		if c.Passed(c.Now, r.Since.Add(slowAnswer)) {
			return true
		}
	}
	return false
}

// RoomFor reports whether one more task that runs a process of a user may begin.
func (w *work) RoomFor(uid uint32) bool {
	if own := w.Hands[uid]; own > 0 {
		return own < userAtOnce && len(w.Lent) < usersAtOnce-newcomers
	}
	return len(w.Lent) < usersAtOnce
}

// BusyBeside reports whether a job is busy with a start or a growth that does not use a hold.
func (w *work) BusyBeside(j *Job, hold string) bool {
	for _, p := range w.Pending {
		switch {
		case p.Job != j.ID:
		case p.Kind == KindStart:
			return CommandOf[msg.Start](p).Hold != hold
		case p.Kind == KindGrow, p.Kind == KindOpen, p.Kind == KindSubmit:
			return CommandOf[msg.Grow](p).Hold != hold
		}
	}
	return false
}

// lend counts a task that runs a process of a user.
func (w *work) lend(id int64, uid uint32) {
	w.Lent[id] = uid
	w.Hands[uid]++
}

// TakeBack forgets whose task this was.
func (w *work) TakeBack(id int64) {
	delete(w.Reads, id)
	uid, lent := w.Lent[id]
	if !lent {
		return
	}
	delete(w.Lent, id)
	if w.Hands[uid]--; w.Hands[uid] == 0 {
		delete(w.Hands, uid)
	}
}

// handsOf returns in whose name a command runs a process, if it does: that user can stop it and write what it prints.
func handsOf(do msg.Command) (uid uint32, lent bool) {
	switch do := do.(type) {
	case msg.Grow:
		return do.As, !do.Own || do.ByJob
	case msg.Update:
		return do.As, do.As != 0
	case msg.ReadRequest:
		return do.UID, !do.Own && do.Growth > 0
	}
	return 0, false
}

// JobOf returns the job that is busy with a task, or nil if there is none or it ended long ago.
func (c *Core) JobOf(p *Pending) *Job {
	if p.Job == 0 {
		return nil
	}
	for _, jobs := range [][]*Job{c.Active, c.Ended} {
		if i := slices.IndexFunc(jobs, func(j *Job) bool { return j.ID == p.Job }); i >= 0 {
			return jobs[i]
		}
	}
	return nil
}

// Finish records that a task has ended.
func (c *Core) Finish(j *Job, p *Pending, err error) {
	w := &c.Work
	switch {
	case j != nil:
		j.Busy = false
	case p.Job != 0: // its job ended long ago
	case err != nil:
		w.Retry[p.Key] = c.Now.Add(AgainAfter)
		delete(w.Keys, p.Key)
	default:
		delete(w.Retry, p.Key)
		delete(w.Keys, p.Key)
	}
	if p.Chore {
		if w.Chore, w.Chored = false, c.Now; errors.Is(err, msg.ErrBackfilling) {
			w.Chored = w.Chored.Add(AgainAfter)
		}
	}
}

// SettleIntent records the outcome of an action on a job, and returns false if nothing was done. The job is
// nil if it ended long ago.
func SettleIntent(c *Core, j *Job, intent *row.Intent, o msg.Outcome) bool {
	if errors.Is(o.Err, msg.ErrNotWritten) {
		if j != nil {
			c.notWritten(j)
		}
		return false
	}
	text := ""
	if o.Err != nil {
		text = o.Err.Error()
	}
	c.Emit(msg.Settle{Intent: o.Task, At: c.Now, Err: text})
	if j == nil {
		return true
	}
	j.Touched = c.Now
	entry := c.LogJob(j).WithField("action", intent.Action).WithField("seconds", c.Now.Sub(intent.At).Seconds())
	if o.Err != nil {
		j.Failed(intent.Action, o.Err, c.Now, c.Wall)
		if c.Event(j, "failed", map[string]any{"action": intent.Action, "detail": intent.Detail, "error": text}) {
			entry.WithError(o.Err).Warn("action failed, will retry")
		}
	} else {
		j.Failures, j.Failing, j.RetryAt = 0, time.Time{}, time.Time{}
		entry.Debug(intent.Detail)
	}
	return true
}

// notWritten is called when the intent of an action on a job could not be written.
func (c *Core) notWritten(j *Job) {
	j.RetryAt = c.Now.Add(time.Second)
	j.WaitsFor(Because(whyDatabaseNotWritable))
	if j.State == row.Starting { // Slurm has not been asked
		j.NotLaunched()
		c.Save(j)
	}
}

// Free reports whether a task with a key may begin: none is under way, and none has just failed.
func (c *Core) Free(key string) bool { return !c.Work.Keys[key] && c.Due(c.Now, c.Work.Retry[key]) }

// BeginTask starts a task. The job, if there is one, is busy until the outcome arrives. A task that belongs to
// no job has a key: BeginTask returns false while a task with that key is under way, and shortly after one
// failed.
func (c *Core) BeginTask(j *Job, p Pending) bool {
	w := &c.Work
	if j != nil {
		j.Busy, p.Job = true, j.ID
	} else if !c.Free(p.Key) {
		return false
	} else {
		w.Keys[p.Key] = true
	}
	w.Last++
	p.Task.ID = w.Last
	if p.Task.Intent != nil {
		p.Task.Intent.ID = w.Last
	}
	if uid, lent := handsOf(p.Task.Command); lent {
		w.lend(w.Last, uid)
	} else if p.Kind == KindRequest || p.Kind == KindScript {
		w.Reads[w.Last], w.Latest = Reading{p.Args.UID, c.Now}, p.Args.Of
	}
	w.Pending[w.Last] = &p
	if p.Kind != KindSubmit {
		c.Emit(p.Task)
	}
	return true
}

// Ask starts a task: see BeginTask.
func (c *Core) Ask(j *Job, key string, kind Kind, t msg.Task, args Args) bool {
	return c.BeginTask(j, Pending{Task: t, Kind: kind, Key: key, Args: args})
}

// Do starts an action on a job. The intent is written before it, and settled with the outcome after it. A
// failed action is tried again later, less and less often.
func (c *Core) Do(j *Job, action, detail string, kind Kind, do msg.Command, args Args) {
	intent := &row.Intent{Job: j.ID, Action: action, Detail: detail, At: c.Now}
	c.BeginTask(j, Pending{Task: msg.Task{Intent: intent, Command: do}, Kind: kind, Args: args})
}

// Chore starts a task that can wait: one at a time, and not while slurmctld would let it wait
// (ErrBackfilling). It reports false if the task cannot begin yet.
func (c *Core) Chore(from *msg.Allowance, j *Job, kind Kind, do msg.Command, args Args) bool {
	w := &c.Work
	if w.Chore || !w.RoomForHolds() || !c.Due(c.Now, w.nextChore(c.Pace.Gated)) || !from.Take(c.Now, c.Config.Slurm.Share) {
		c.Quiet.PutOff = true
		return false
	}
	w.Chore = true
	return c.BeginTask(j, Pending{Task: c.Gently(do), Kind: kind, Chore: true, Args: args})
}

// Gently returns a task that does not wait for slurmctld's backfill scheduler if commands cost so much that it
// matters.
func (c *Core) Gently(do msg.Command) msg.Task { return msg.Task{Gently: c.Pace.Gated, Command: do} }

// nextChore returns the earliest time of the next chore.
func (w *work) nextChore(gated bool) time.Time {
	if !gated {
		return w.Chored
	}
	return w.Chored.Add(chorePause)
}
