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
	case "Jobs", "JobsByID", "Glance", "Nodes", "Reservations", "Config", "Backfill", "Slurmdbd", "BatchScript", "Request",
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
	c.watched = true
	return &Client{cluster: c, user: u}
}

// Calls returns how many commands the client has run.
func (k *Client) Calls() uint64 { return k.calls }

// underWay is a command whose caller is waiting.
type underWay struct {
	ctx    context.Context
	settle func(error)
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
	c.after(d, func() {
		cancel(context.DeadlineExceeded)
		for _, u := range slices.Clone(c.underWay) {
			if err := ended(u.ctx); err != nil {
				u.settle(err)
			}
		}
	})
	return own, func() { cancel(context.Canceled) }
}

// patience returns how long a command may last. For a deadline by the real clock, it is the
// remaining time, rounded up to seconds. It is then the same in every run if the context was made
// just before.
func (c *Cluster) patience(ctx context.Context) time.Duration {
	most := slurmctl.DefaultTimeout
	if at, ok := ctx.Deadline(); ok {
		most = min(most, (time.Until(at) + time.Second - 1).Truncate(time.Second))
	}
	return max(most, 0)
}

// chanced returns a command's duration with random time added.
func (c *Cluster) chanced(d time.Duration) time.Duration {
	if c.options.Latency.Spread == 0 {
		return d
	}
	return d + time.Duration(float64(d)*c.options.Latency.Spread*c.chance.ExpFloat64())
}

// call runs f in the middle of a command that takes d. What f finds counts only if call returns no
// error.
func (k *Client) call(ctx context.Context, d time.Duration, q Command, f func() error) error {
	return k.run(ctx, d, q, func(done func(error)) { done(f()) })
}

// run is call for a command that slurmctld answers later: f receives the function to call then.
func (k *Client) run(ctx context.Context, d time.Duration, q Command, f func(done func(error))) error {
	c := k.cluster
	k.calls++
	c.commands++
	if err := ended(ctx); err != nil {
		return err
	}
	q.Number, q.User, q.At = c.commands, k.user, c.Now()
	var fault Fault
	if c.options.Faults != nil {
		fault = c.options.Faults(q)
	}
	d = c.chanced(d)
	most := c.patience(ctx)
	var outcome error
	c.block(func(wake func()) {
		settled := false
		waits := &underWay{ctx: ctx}
		settle := func(err error) {
			if !settled {
				settled, outcome = true, err
				c.underWay = slices.DeleteFunc(c.underWay, func(u *underWay) bool { return u == waits })
				wake()
			}
		}
		waits.settle = settle
		if q.Name != "Allocate" { // Allocate watches its own time
			c.underWay = append(c.underWay, waits)
		}
		answer := func(err error) {
			if fault.Err != nil {
				err = fault.Err
			}
			c.after(fault.After+d-d/2, func() {
				if gone := ended(ctx); gone != nil && q.Name != "Allocate" {
					err = gone
				}
				settle(err)
			})
		}
		c.after(fault.Before+d/2, func() {
			switch {
			case c.down:
				c.after(c.options.Latency.Lost, func() { settle(errUnreachable) })
			case fault.Drop:
				answer(errUnreachable)
			default:
				f(answer)
			}
		})
		if faulty := fault.Before+fault.After > 0 || c.down; q.Name == "Allocate" && faulty || q.Name != "Allocate" && (fault.Before+d+fault.After > most || c.down) {
			c.after(most, func() { settle(errTimeout) })
		}
	})
	return outcome
}

// look runs a command that changes nothing.
func look[T any](ctx context.Context, k *Client, q Command, f func() (T, error)) (T, error) {
	var found, none T
	err := k.call(ctx, k.cluster.Looking(), q, func() (err error) {
		found, err = f()
		return err
	})
	if err != nil {
		return none, err
	}
	return found, nil
}

func (k *Client) change(ctx context.Context, q Command, f func() error) error {
	return k.call(ctx, k.cluster.options.Latency.Change, q, f)
}

// mine finds a job that the user may change.
func (k *Client) mine(id slurmctl.JobID) (*job, error) {
	j := k.cluster.jobs[id]
	switch {
	case j == nil:
		return nil, refusal("Invalid job id specified")
	case k.user.UID != 0 && j.UID != k.user.UID:
		return nil, refusal("Access/permission denied")
	}
	return j, nil
}
