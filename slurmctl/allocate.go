package slurmctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

const (
	// allocateGrace is how much longer a silent salloc may take to reach slurmctld after its
	// deadline. A job that it requests later is found by name.
	allocateGrace = 2 * time.Second
	// pendingLook is the interval at which a pending allocation is checked, and silentLook the
	// interval while salloc has printed nothing.
	pendingLook = 250 * time.Millisecond
	silentLook  = time.Second
	// limitSeen is how long a limit must block an allocation before Allocate gives up: another job
	// of the user may be about to end.
	limitSeen = time.Second
)

// ErrNoName means that an allocation has no name to find it by.
var ErrNoName = errors.New("salloc --job-name: an allocation must have a name of its own")

var (
	errSeveral  = errors.New("several jobs have the name of the allocation")
	errKeptBack = errors.New("a limit keeps it back")
	errEnded    = errors.New("salloc has ended")
)

// Allocate runs salloc --no-shell and waits until Slurm grants the allocation. If the context has
// no deadline, it waits as long as any command may. If the context ends first, Allocate cancels the
// job, pending or granted, before it returns. It returns the job as seen once granted. With an
// error, it returns at most the job's ID. If slurmctld did not answer in time, or the user blocked
// scancel, a job may remain: search for its Name.
//
// salloc runs as the user, who can stop it and write into its pipes. Allocate therefore finds the
// job by user and name, as Slurm reports them. What salloc prints only makes Allocate look at once.
// It cancels jobs as the user.
//
// Allocate ends salloc once the job is granted. Otherwise salloc would poll the nodes at growing
// intervals until they are ready, which takes 3 s if a prolog runs (PrologFlags=Contain), although
// srun could use them after 0.1 s (measured on 22.05). The job may be CONFIGURING when Allocate
// returns.
//
// If Slurm does not grant the job in time, the error is a *PendingError, which says why the job was
// pending. Allocate gives up a job blocked by a limit ([Limited]) after a second or two. It fails
// with ErrLimit, ErrDependency (no such running base job), ErrNotSupported, ….
func (c *Client) Allocate(ctx context.Context, q AllocateRequest) (Job, error) {
	args, err := q.args()
	switch {
	case err != nil:
		return Job{}, err
	case q.Name == "":
		return Job{}, ErrNoName
	case ctx.Err() != nil:
		return Job{}, ctx.Err()
	}
	a := &allocation{Client: c, AllocateRequest: q, args: append([]string{"salloc"}, args...),
		hint: hint{news: make(chan struct{}, 1)}, enough: make(chan struct{}), ended: make(chan error, 1)}
	bounded, cancel := a.bound(ctx)
	defer cancel()
	end, _ := bounded.Deadline()
	own, stop := context.WithDeadline(context.WithoutCancel(ctx), end.Add(2*allocateGrace)) // closing enough ends it earlier
	go func() {
		defer stop()
		_, _, err := c.run(own, command{name: "salloc", args: args, user: q.User, watch: a.hint.look, enough: a.enough, open: true})
		a.ended <- err
	}()
	j, err := a.await(bounded)
	if err == nil {
		close(a.enough)
		return j, nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout())
	defer cancel()
	id, failed := a.giveUp(after)
	return Job{ID: id}, errors.Join(err, failed)
}

// allocation is a running salloc.
type allocation struct {
	*Client
	AllocateRequest
	args   []string // salloc's arguments, its name first
	hint   hint
	enough chan struct{} // close it to end salloc
	ended  chan error    // receives how salloc ended

	over    bool      // salloc has ended
	failed  error     // why salloc failed, or nil
	seen    Job       // job as last seen; zero if never
	letGo   bool      // a parked job, already released
	limited time.Time // since when a limit has blocked the job; zero if none does
}

// bound returns the context with a deadline.
func (a *allocation) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, a.timeout())
}

// await polls the job until it is granted.
func (a *allocation) await(ctx context.Context) (Job, error) {
	for {
		pause := silentLook
		if a.hint.lines.Load() > 0 {
			pause = pendingLook
		}
		select {
		case <-ctx.Done():
			return Job{}, a.lacks(ctx.Err())
		case a.failed = <-a.ended:
			a.over = true
			if a.refused() {
				return Job{}, a.failed
			}
		case <-a.hint.news:
		case <-time.After(pause):
		}
		live, last, err := a.find(ctx)
		if err != nil {
			continue // ask again
		}
		granted, err := a.judge(ctx, live, last)
		if granted || err != nil {
			return a.seen, err
		}
	}
}

// find queries the jobs with the allocation's user and name. It returns the live jobs and the last
// ended one.
func (a *allocation) find(ctx context.Context) (live []Job, last Job, err error) {
	uid := uint32(os.Geteuid())
	if a.User != nil {
		uid = a.User.UID
	}
	jobs, err := a.Named(ctx, uid, a.Name)
	for _, j := range jobs {
		if j.Ended() || j.State == Completing {
			last = j
		} else {
			live = append(live, j)
		}
	}
	return live, last, err
}

// refused reports whether salloc failed without requesting a job, as far as is known.
func (a *allocation) refused() bool {
	return a.over && a.failed != nil && a.hint.lines.Load() == 0 && a.seen.ID == 0
}

// judge decides from the jobs found whether the allocation is granted, is waiting, or will never be
// granted.
func (a *allocation) judge(ctx context.Context, live []Job, last Job) (granted bool, err error) {
	switch {
	case len(live) > 1:
		return false, fmt.Errorf("%w %q", errSeveral, a.Name)
	case len(live) == 0 && !a.over:
		return false, nil
	case len(live) == 0 && a.failed != nil:
		return false, a.failed
	case len(live) == 0 && last.ID != 0:
		return false, fmt.Errorf("job %d: %w (%s) as soon as granted", last.ID, ErrAlreadyDone, last.State)
	case len(live) == 0:
		return false, refused(a.args, 0, "", "no allocation was granted")
	}
	before := a.seen
	if a.seen = live[0]; a.seen.State != Pending {
		// salloc has its answer, or had enough time for it: slurmctld ends a job whose answer it
		// cannot deliver
		return a.over || a.hint.granted.Load() || before.ID == a.seen.ID && before.State != Pending, nil
	}
	if a.over && !errors.Is(a.failed, errAlarm) { // slurmctld keeps the job of a salloc that was killed
		return false, a.lacks(errEnded)
	}
	if a.Parked && !a.letGo {
		a.letGo = true
		return false, a.UpdateJob(ctx, a.seen.ID, JobUpdate{StartNow: true, Reservation: &a.Reservation})
	}
	switch {
	case KindOf(a.seen.Reason) != LimitReason:
		a.limited = time.Time{}
	case a.limited.IsZero():
		a.limited = time.Now()
	case time.Since(a.limited) >= limitSeen:
		return false, a.lacks(errKeptBack)
	}
	return false, nil
}

// lacks returns the error for an allocation that was not granted.
func (a *allocation) lacks(why error) error {
	err := &CommandError{Args: a.args, ExitCode: -1, Err: why, waiting: true}
	if a.seen.ID == 0 {
		return err
	}
	return &PendingError{Job: a.seen.ID, Reason: a.seen.Reason, Err: err}
}

// giveUp ends salloc and cancels, as the user, the jobs it requested.
func (a *allocation) giveUp(ctx context.Context) (JobID, error) {
	if a.refused() {
		return 0, nil
	}
	if !a.over && a.hint.lines.Load() == 0 {
		select {
		case a.failed = <-a.ended:
			a.over = true
		case <-a.hint.news:
		case <-time.After(allocateGrace):
		}
	}
	close(a.enough)
	if !a.over {
		a.failed = <-a.ended
	}
	live, _, err := a.find(ctx)
	if err != nil || len(live) == 0 {
		return a.seen.ID, err
	}
	ids := make([]JobID, len(live))
	for i, j := range live {
		ids[i] = j.ID
	}
	return ids[0], a.CancelAs(ctx, a.User, ids...)
}

var allocationPattern = pattern(`(?m)^salloc: (Pending|Granted) job allocation \d+$`)

// hint notices in salloc's output that there is something to look at. The user controls this text,
// so it decides nothing, and at most mostHints lines of it make Allocate look.
type hint struct {
	news    chan struct{} // holds at most one pending notification
	lines   atomic.Int32
	granted atomic.Bool
	read    int // bytes read, whole lines only
	seen    int // bytes already searched for a line end
}

// mostHints is the number of lines that an honest salloc prints: its job is pending, and its job is
// granted.
const mostHints = 2

func (h *hint) look(stderr []byte) {
	last := bytes.LastIndexByte(stderr[h.seen:], '\n')
	end := h.seen + last + 1
	if h.seen = len(stderr); last < 0 || h.lines.Load() >= mostHints {
		return
	}
	found := allocationPattern().FindAllSubmatch(stderr[h.read:end], mostHints)
	h.read = end
	for _, m := range found {
		if string(m[1]) == "Granted" {
			h.granted.Store(true)
		}
	}
	if len(found) > 0 {
		h.lines.Add(int32(len(found)))
		select {
		case h.news <- struct{}{}:
		default:
		}
	}
}
