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
	// allocateGrace is how long a salloc that has said nothing may still take to reach
	// slurmctld once its time is up: a job that it asks for later is found by its name.
	allocateGrace = 2 * time.Second
	// pendingLook is the time between two looks at an allocation that is pending, and
	// silentLook where salloc has said nothing yet.
	pendingLook = 250 * time.Millisecond
	silentLook  = time.Second
	// limitSeen is how long a limit must keep an allocation back to be believed: another
	// job of the user may be about to end.
	limitSeen = time.Second
)

// ErrNoName says that an allocation has no name by which it could be found.
var ErrNoName = errors.New("salloc --job-name: an allocation must have a name of its own")

var (
	errSeveral  = errors.New("several jobs have the name of the allocation")
	errKeptBack = errors.New("a limit keeps it back")
	errEnded    = errors.New("salloc has ended")
)

// Allocate runs salloc --no-shell and waits until the allocation is granted.
// Without a deadline of the context it waits as long as any command may. When
// the context ends first, Allocate cancels the job, pending or granted, before
// it returns. It gives the job as it was seen once granted, or with an error no
// more than its id, where that is known. Where slurmctld did not answer in time, or
// somebody kept scancel from ending the job, there may be a job still: search for its Name.
//
// salloc runs as the user, who can stop it and write into its pipes. Allocate therefore
// finds the job by user and name, as Slurm tells them; what salloc prints only has it look
// at once. It cancels in the user's name.
//
// Once the job is granted salloc is ended: it would look for the nodes to be ready
// at growing intervals, which takes 3 s where a prolog runs (PrologFlags=Contain),
// though srun could use them after 0.1 s (measured on 22.05). The job may be
// CONFIGURING when Allocate returns.
//
// Where it is not granted in time the error is a *PendingError, which tells why the job
// was pending; one that a limit keeps back ([Limited]) is given up after a second or
// two. It fails with ErrLimit, ErrDependency (no such running base job), ErrNotSupported, ….
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
	own, stop := context.WithDeadline(context.WithoutCancel(ctx), end.Add(2*allocateGrace)) // enough ends it before
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

// allocation is a salloc under way.
type allocation struct {
	*Client
	AllocateRequest
	args   []string // of salloc, its name first
	hint   hint
	enough chan struct{} // closed: salloc is to end
	ended  chan error    // how it has ended

	over    bool      // it has ended
	failed  error     // how, if it has failed
	seen    Job       // as it was seen last; zero: never
	letGo   bool      // a parked one
	limited time.Time // since when a limit has kept it back; zero: none does
}

// bound is the context with a deadline.
func (a *allocation) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, a.timeout())
}

// await looks for the job until it is granted.
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
			continue // asked again
		}
		granted, err := a.judge(ctx, live, last)
		if granted || err != nil {
			return a.seen, err
		}
	}
}

// find asks Slurm for the jobs of the allocation's user and name: the live ones, and the last
// one that is over.
func (a *allocation) find(ctx context.Context) (live []Job, last Job, err error) {
	uid := uint32(os.Geteuid())
	if a.User != nil {
		uid = a.User.UID
	}
	jobs, err := a.named(ctx, uid, a.Name)
	for _, j := range jobs {
		if j.Ended() || j.State == Completing {
			last = j
		} else {
			live = append(live, j)
		}
	}
	return live, last, err
}

// refused reports whether salloc has failed and asked slurmctld for nothing, by all that is known.
func (a *allocation) refused() bool {
	return a.over && a.failed != nil && a.hint.lines.Load() == 0 && a.seen.ID == 0
}

// judge goes by what was found: the job is granted, waits, or never will be there.
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
		// salloc has its answer, or has had the time for it: slurmctld ends a job whose
		// answer it cannot deliver
		return a.over || a.hint.granted.Load() || before.ID == a.seen.ID && before.State != Pending, nil
	}
	if a.over {
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

// lacks is the error of an allocation that was not granted.
func (a *allocation) lacks(why error) error {
	err := &CommandError{Args: a.args, ExitCode: -1, Err: why, waiting: true}
	if a.seen.ID == 0 {
		return err
	}
	return &PendingError{Job: a.seen.ID, Reason: a.seen.Reason, Err: err}
}

// giveUp ends salloc and, in the user's name, what it has brought.
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

// hint finds in what salloc prints that there is something to look at. The text is the
// user's: it decides nothing, and no more than mostHints lines of it have Allocate look.
type hint struct {
	news    chan struct{} // holds one thing that was not looked at
	lines   atomic.Int32
	granted atomic.Bool
	read    int // bytes that were read, all of them whole lines
	seen    int // bytes that were searched for the end of a line
}

// mostHints are those of an honest salloc: that its job is pending, and that it is granted.
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
