package slurmsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Command is a client's command that has started.
type Command struct {
	Number uint64 // of all commands of the cluster, from 1 on
	Name   string // the client's method: "Jobs", "UpdateJob", …
	User   User
	Jobs   []slurmctl.JobID // jobs that it concerns
	About  string           // name of the reservation or nodes
	At     time.Time
}

func (q Command) String() string {
	text := q.Name
	for _, id := range q.Jobs {
		text += fmt.Sprintf(" %d", id)
	}
	if q.About != "" {
		text += " " + q.About
	}
	return text
}

// Changes reports whether the command changes Slurm's state.
func (q Command) Changes() bool {
	switch q.Name {
	case "Jobs", "JobsByID", "Glance", "Named", "Nodes", "Reservations", "Config", "Backfill", "Slurmdbd", "BatchScript", "Request",
		"AccrueTimes", "TimeUsed", "Limits", "Version", "Ping", "Clock", "AdminLevel":
		return false
	}
	return true
}

func about(name string, ids ...slurmctl.JobID) Command { return Command{Name: name, Jobs: ids} }

// Fault is a fault to inject into a command; the zero value injects none. A command hangs if its
// answer comes later than its client waits.
type Fault struct {
	Before time.Duration // delay until it reaches slurmctld
	Drop   bool          // it never reaches slurmctld
	After  time.Duration // delay of its answer
	Err    error         // its answer, whatever it did
}

// Client runs commands on the model as one user. It has the methods of slurmctl.Client and fails in
// the same way. Every call takes virtual time. During a call by a [Process], others continue; a
// call from outside advances the clock until the command has ended.
type Client struct {
	cluster *Cluster
	user    User
	calls   uint64

	wantsAccount bool
}

// Client returns a client of a user.
func (c *Cluster) Client(u User) *Client {
	c.Watched = true
	return &Client{cluster: c, user: u}
}

// Calls returns how many commands the client has run.
func (k *Client) Calls() uint64 { return k.calls }

// underWay is a command whose caller is waiting.
type underWay struct {
	cluster  *Cluster
	ctx      context.Context
	patient  bool // watches its own time, as Allocate does
	fault    Fault
	duration time.Duration
	wake     func() // continues the caller
	settled  bool
	outcome  error
}

// ended returns the error of a command whose context has ended.
func ended(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return errTimeout
	}
	return &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: -1, Err: ctx.Err()}
}

// WithTimeout is context.WithTimeout in virtual time. The cluster's commands stop at that moment.
// (They notice any other cancellation only at their next start.)
func (c *Cluster) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancelCause(ctx)
	c.Later(d, expires{cancel})
	return own, func() { cancel(context.Canceled) }
}

// expires ends a context with what still uses it: nothing after a checkpoint.
type expires struct {
	context context.CancelCauseFunc `codec:"-"`
}

// Act implements Action.
func (e expires) Act(c *Cluster) {
	if e.context != nil {
		e.context(context.DeadlineExceeded)
	}
	for _, u := range slices.Clone(c.underWay) {
		if err := ended(u.ctx); err != nil {
			u.settle(err)
		}
	}
}

// patience returns how long a command may last. For a deadline by the real clock, it is the
// remaining time, rounded up to seconds. It is then the same in every run if the context was made
// just before.
func patience(ctx context.Context) time.Duration {
	most := slurmctl.DefaultTimeout
	if at, ok := ctx.Deadline(); ok {
		most = min(most, (time.Until(at) + time.Second - 1).Truncate(time.Second))
	}
	return max(most, 0)
}

// chanced returns a command's duration with random time added.
func chanced(c *Cluster, d time.Duration) time.Duration {
	if c.options.Latency.Spread == 0 {
		return d
	}
	return d + time.Duration(float64(d)*c.options.Latency.Spread*c.chance.ExpFloat64())
}

// call runs f in the middle of a command that takes d. What f finds counts only if call returns no
// error.
func call(ctx context.Context, k *Client, d time.Duration, q Command, f func() error) error {
	return runCommand(ctx, k, d, q, func(done func(error)) { done(f()) })
}

// runCommand is call for a command that slurmctld answers later: f receives the function to call
// then.
func runCommand(ctx context.Context, k *Client, d time.Duration, q Command, f func(done func(error))) error {
	c := k.cluster
	k.calls++
	c.Commands++
	if err := ended(ctx); err != nil {
		return err
	}
	q.Number, q.User, q.At = c.Commands, k.user, c.Now()
	u := &underWay{cluster: c, ctx: ctx, patient: q.Name == "Allocate"}
	if c.options.Faults != nil {
		u.fault = c.options.Faults(q)
	}
	u.duration = chanced(c, d)
	most := patience(ctx)
	c.block(func(wake func()) {
		u.wake = wake
		if !u.patient {
			c.underWay = append(c.underWay, u)
		}
		c.After(u.fault.Before+u.duration/2, func() { u.arrive(f) })
		if u.mayOutlast(most) {
			c.Later(most, times{u})
		}
	})
	return u.outcome
}

// mayOutlast reports whether the command may last longer than that.
func (u *underWay) mayOutlast(most time.Duration) bool {
	delay := u.fault.Before + u.fault.After
	if u.cluster.Down {
		return true
	}
	if u.patient {
		return delay > 0
	}
	return delay+u.duration > most
}

// times ends the wait for a command that takes too long: none after a checkpoint.
type times struct {
	out *underWay `codec:"-"`
}

// Act implements Action.
func (t times) Act(*Cluster) {
	if t.out != nil {
		t.out.settle(errTimeout)
	}
}

// arrive brings the command to slurmctld, which runs f.
func (u *underWay) arrive(f func(done func(error))) {
	switch c := u.cluster; {
	case c.Down:
		c.After(c.options.Latency.Lost, func() { u.settle(errUnreachable) })
	case u.fault.Drop:
		u.answer(errUnreachable)
	default:
		f(u.answer)
	}
}

// answer brings slurmctld's answer to the caller.
func (u *underWay) answer(err error) {
	if u.fault.Err != nil {
		err = u.fault.Err
	}
	u.cluster.After(u.fault.After+u.duration-u.duration/2, func() {
		if gone := ended(u.ctx); gone != nil && !u.patient {
			err = gone
		}
		u.settle(err)
	})
}

// settle ends the caller's wait, once.
func (u *underWay) settle(err error) {
	if u.settled {
		return
	}
	u.settled, u.outcome = true, err
	c := u.cluster
	c.underWay = slices.DeleteFunc(c.underWay, func(o *underWay) bool { return o == u })
	u.wake()
}

// look runs a command that changes nothing.
func look[T any](ctx context.Context, k *Client, q Command, f func() (T, error)) (T, error) {
	var found, none T
	err := call(ctx, k, k.cluster.Looking(), q, func() (err error) {
		found, err = f()
		return err
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

func change(ctx context.Context, k *Client, q Command, f func() error) error {
	return call(ctx, k, k.cluster.options.Latency.Change, q, f)
}

// ownJob finds a job that the user may change.
func ownJob(k *Client, id slurmctl.JobID) (*job, error) {
	j := k.cluster.Jobs[id]
	switch {
	case j == nil:
		return nil, refusal("Invalid job id specified")
	case !k.user.may() && j.UID != k.user.UID:
		return nil, refusal("Access/permission denied")
	}
	return j, nil
}
