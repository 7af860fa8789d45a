package slurmsim

import (
	"context"
	"errors"
	"fmt"

	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// Client runs commands on the model as one user. Every call lets as much virtual time
// pass as the command takes; it fails as slurmctl.Client does.
type Client struct {
	cluster *Cluster
	user    User
	calls   uint64
}

// Client gives a client of a user.
func (c *Cluster) Client(u User) *Client { return &Client{cluster: c, user: u} }

// refusal is an error in slurmctld's words.
func refusal(text string) error {
	return &slurmctl.CommandError{Args: []string{"slurmsim"}, ExitCode: 1, Stderr: text, Err: errors.New(text)}
}

// Calls says how many commands the client has run.
func (k *Client) Calls() uint64 { return k.calls }

// call runs f in the midst of a command that takes d.
func (k *Client) call(ctx context.Context, d time.Duration, f func() error) error {
	k.calls++
	if err := ctx.Err(); err != nil {
		return err
	}
	k.cluster.pass(d / 2)
	err := f()
	k.cluster.pass(d - d/2)
	return err
}

func (k *Client) look(ctx context.Context, f func() error) error {
	l := k.cluster.options.Latency
	return k.call(ctx, l.Look+time.Duration(len(k.cluster.order))*l.PerJob, f)
}

func (k *Client) change(ctx context.Context, f func() error) error {
	return k.call(ctx, k.cluster.options.Latency.Change, f)
}

// shown is the job as squeue shows it.
func (c *Cluster) shown(j *job) slurmctl.Job {
	r := j.Job
	r.NodeList, r.ReqNodes, r.ExcNodes = slices.Clone(r.NodeList), slices.Clone(r.ReqNodes), slices.Clone(r.ExcNodes)
	if at, ok := c.planned[j.ID]; ok && r.State == slurmctl.Pending && !j.request.Begin.After(c.now) {
		r.StartTime = at.Truncate(time.Second)
	}
	return r
}

// Jobs is as of slurmctl.Client.
func (k *Client) Jobs(ctx context.Context) (jobs []slurmctl.Job, err error) {
	err = k.look(ctx, func() error {
		for _, id := range k.cluster.order {
			jobs = append(jobs, k.cluster.shown(k.cluster.jobs[id]))
		}
		return nil
	})
	return jobs, err
}

// JobsByID is as of slurmctl.Client.
func (k *Client) JobsByID(ctx context.Context, ids ...slurmctl.JobID) ([]slurmctl.Job, error) {
	return k.Glance(ctx, ids...)
}

// Glance is as of slurmctl.Client.
func (k *Client) Glance(ctx context.Context, ids ...slurmctl.JobID) (jobs []slurmctl.Job, err error) {
	for _, id := range ids {
		if err := k.call(ctx, k.cluster.options.Latency.Look, func() error {
			if j := k.cluster.jobs[id]; j != nil {
				jobs = append(jobs, k.cluster.shown(j))
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// Nodes is as of slurmctl.Client.
func (k *Client) Nodes(ctx context.Context) (nodes []slurmctl.Node, partitions []slurmctl.Partition, err error) {
	c := k.cluster
	err = k.look(ctx, func() error {
		partitions = slices.Clone(c.partitions)
		for i := range c.nodes {
			n := &c.nodes[i]
			shown := slurmctl.Node{Name: n.name, State: c.nodeState(i), CPUs: c.options.CPUs, CPUsAlloc: n.used, Memory: c.options.MemoryMB, Weight: 1}
			if n.leaked {
				shown.CPUsAlloc = c.options.CPUs
			}
			for _, p := range partitions {
				if slices.Contains(p.Nodes, n.name) {
					shown.Partitions = append(shown.Partitions, p.Name)
				}
			}
			nodes = append(nodes, shown)
		}
		return nil
	})
	return nodes, partitions, err
}

func (c *Cluster) nodeState(i int) string {
	n := &c.nodes[i]
	switch {
	case n.down:
		return "down"
	case n.drained && n.used > 0:
		return "draining"
	case n.drained:
		return "drained"
	case n.freeing > 0:
		return "completing"
	case n.leaked, n.used >= c.options.CPUs, n.whole > 0:
		return "allocated"
	case n.used > 0:
		return "mixed"
	}
	for _, r := range c.reservations {
		if !r.Start.After(c.now) && r.End.After(c.now) && slices.Contains(r.Nodes, n.name) {
			return "reserved"
		}
	}
	return "idle"
}

// Reservations is as of slurmctl.Client.
func (k *Client) Reservations(ctx context.Context) (all []slurmctl.Reservation, err error) {
	err = k.look(ctx, func() error {
		for _, r := range k.cluster.reservations {
			shown := r.Reservation
			shown.Active = !shown.Start.After(k.cluster.now) && shown.End.After(k.cluster.now)
			shown.Start = shown.Start.Truncate(time.Second)
			all = append(all, shown)
		}
		return nil
	})
	return all, err
}

// Config is as of slurmctl.Client.
func (k *Client) Config(ctx context.Context) (cfg slurmctl.Config, err error) {
	err = k.look(ctx, func() error {
		cfg = k.cluster.options.config(k.cluster.boot)
		return nil
	})
	return cfg, err
}

// Backfill is as of slurmctl.Client.
func (k *Client) Backfill(ctx context.Context) (busy bool, ended time.Time, err error) {
	err = k.look(ctx, func() error { ended = k.cluster.filled; return nil })
	return false, ended, err
}

// Slurmdbd is as of slurmctl.Client.
func (k *Client) Slurmdbd(ctx context.Context) error {
	return k.call(ctx, k.cluster.options.Latency.Look, func() error {
		if !k.cluster.options.Accounting {
			return slurmctl.ErrNoSlurmdbd
		}
		return nil
	})
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

// UpdateJob is as of slurmctl.Client.
func (k *Client) UpdateJob(ctx context.Context, id slurmctl.JobID, u slurmctl.JobUpdate) error {
	return k.change(ctx, func() error {
		j, err := k.mine(id)
		if err != nil {
			return err
		}
		return k.cluster.update(j, u)
	})
}

// update changes a job by all of u or by nothing.
func (c *Cluster) update(j *job, u slurmctl.JobUpdate) error {
	if j.Ended() || j.State == slurmctl.Completing {
		return refusal("Job has already finished")
	}
	pendingOnly := u.StartNow || !u.StartTime.IsZero() || u.NumNodes > 0 || u.Partition != ""
	if pendingOnly && j.State != slurmctl.Pending {
		return refusal("Job is no longer pending execution")
	}
	if u.Reservation != nil && *u.Reservation != "" {
		r := c.reservation(*u.Reservation)
		if r == nil {
			return refusal("Requested reservation is invalid")
		}
		if !r.allows(j.request.User) {
			return refusal("Access denied to requested reservation")
		}
		r.used = c.now
	}
	if u.Partition != "" && c.partition(u.Partition) == nil {
		return refusal("Invalid partition name specified")
	}
	switch {
	case u.StartNow:
		j.request.Begin, j.StartTime = c.second(), c.second()
	case !u.StartTime.IsZero():
		j.request.Begin, j.StartTime = u.StartTime, u.StartTime
	}
	if u.Reservation != nil {
		if r := c.reservation(j.Reservation); r != nil {
			r.used = c.now
		}
		j.Reservation = *u.Reservation
	}
	if u.TimeLimit != 0 {
		j.TimeLimit = u.TimeLimit
		if u.TimeLimit != slurmctl.Unlimited {
			j.TimeLimit = (u.TimeLimit + time.Minute - 1).Truncate(time.Minute)
			if j.active() {
				j.EndTime = j.StartTime.Add(j.TimeLimit)
			}
		} else {
			j.EndTime = time.Time{}
		}
	}
	if !u.EndTime.IsZero() && j.active() {
		j.EndTime = u.EndTime
		j.TimeLimit = (u.EndTime.Sub(j.StartTime) + time.Minute - 1).Truncate(time.Minute)
	}
	if u.Partition != "" {
		j.Partition = u.Partition
	}
	if u.NumNodes > 0 {
		j.NumNodes, j.request.Nodes = u.NumNodes, u.NumNodes
	}
	if u.Comment != nil {
		j.Comment = *u.Comment
	}
	if u.AdminComment != nil {
		j.AdminComment = *u.AdminComment
	}
	if u.Nice != nil {
		j.Nice = *u.Nice
	}
	if u.Dependency != nil {
		if err := c.depend(j, *u.Dependency); err != nil {
			return err
		}
	}
	c.touch()
	c.kick()
	return nil
}

// depend sets a pending job's dependency: "", "afterok:7", "expand:7".
func (c *Cluster) depend(j *job, text string) error {
	kind, rest, _ := strings.Cut(text, ":")
	j.request.After, j.Dependency = nil, ""
	if text == "" {
		return nil
	}
	var id slurmctl.JobID
	if _, err := fmt.Sscan(rest, &id); err != nil {
		return refusal("Job dependency problem")
	}
	if kind == "expand" {
		if base := c.jobs[id]; base == nil || base.State != slurmctl.Running {
			return refusal("Job dependency problem")
		}
		j.expands = id
		return nil
	}
	j.request.After, j.Dependency = []Dependency{{kind, id}}, text
	return nil
}

// Merge is as of slurmctl.Client.
func (k *Client) Merge(ctx context.Context, expander slurmctl.JobID) error {
	return k.call(ctx, k.cluster.options.Latency.Merge, func() error {
		j, err := k.mine(expander)
		if err != nil {
			return err
		}
		return k.cluster.merge(j)
	})
}

// Shrink is as of slurmctl.Client.
func (k *Client) Shrink(ctx context.Context, id slurmctl.JobID, keep []string) error {
	return k.call(ctx, k.cluster.options.Latency.Shrink, func() error {
		j, err := k.mine(id)
		if err != nil {
			return err
		}
		return k.cluster.shrink(j, keep)
	})
}

// Cancel is as of slurmctl.Client.
func (k *Client) Cancel(ctx context.Context, ids ...slurmctl.JobID) error {
	return k.change(ctx, func() error {
		for _, id := range ids {
			j := k.cluster.jobs[id]
			if j == nil || j.Ended() || j.State == slurmctl.Completing {
				continue
			}
			if _, err := k.mine(id); err != nil {
				return err
			}
			k.cluster.finish(j, slurmctl.Cancelled)
		}
		return nil
	})
}

// Signal is as of slurmctl.Client; the model's jobs mind none.
func (k *Client) Signal(ctx context.Context, id slurmctl.JobID, _ string, _ slurmctl.SignalOptions) error {
	return k.change(ctx, func() error {
		j, err := k.mine(id)
		if err == nil && (j.Ended() || j.State == slurmctl.Completing) {
			err = refusal("Job/step already completing or completed")
		}
		return err
	})
}

// Hold is as of slurmctl.Client.
func (k *Client) Hold(ctx context.Context, id slurmctl.JobID) error {
	return k.onPending(ctx, id, func(j *job) {
		j.Priority, j.Reason = 0, "JobHeldAdmin"
	})
}

// Release is as of slurmctl.Client.
func (k *Client) Release(ctx context.Context, id slurmctl.JobID) error {
	return k.onPending(ctx, id, func(j *job) {
		if j.Priority == 0 {
			j.Priority, j.Reason = firstPriority-uint64(j.ID)+1, "None"
			if k.cluster.options.MultifactorAge > 0 {
				j.Priority = 1
			}
		}
	})
}

func (k *Client) onPending(ctx context.Context, id slurmctl.JobID, f func(*job)) error {
	return k.change(ctx, func() error {
		j, err := k.mine(id)
		if err != nil {
			return err
		}
		if j.State != slurmctl.Pending {
			return refusal("Job is no longer pending execution")
		}
		f(j)
		k.cluster.touch()
		k.cluster.kick()
		return nil
	})
}

// Suspend and Resume are scontrol's: a suspended job's nodes stay its own in the model's
// books, its time stands still.
func (k *Client) Suspend(ctx context.Context, id slurmctl.JobID) error {
	return k.change(ctx, func() error {
		j, err := k.mine(id)
		if err == nil && j.State != slurmctl.Running {
			err = refusal("Job is not running")
		}
		if err != nil {
			return err
		}
		j.epoch++
		j.State = slurmctl.Suspended
		if j.left > 0 {
			j.left = max(j.left-k.cluster.now.Sub(j.resumed), time.Nanosecond)
		}
		j.resumed = k.cluster.now // since when it is suspended
		k.cluster.touch()
		return nil
	})
}

// Resume undoes Suspend: the job's limit moves by the time of suspension.
func (k *Client) Resume(ctx context.Context, id slurmctl.JobID) error {
	return k.change(ctx, func() error {
		j, err := k.mine(id)
		if err == nil && j.State != slurmctl.Suspended {
			err = refusal("Job is not suspended")
		}
		if err != nil {
			return err
		}
		if !j.EndTime.IsZero() {
			j.EndTime = j.EndTime.Add(k.cluster.now.Sub(j.resumed).Truncate(time.Second))
		}
		j.State, j.resumed = slurmctl.Running, k.cluster.now
		k.cluster.watch(j)
		k.cluster.touch()
		return nil
	})
}

// BatchScript is as of slurmctl.Client.
func (k *Client) BatchScript(ctx context.Context, id slurmctl.JobID) (text string, err error) {
	err = k.look(ctx, func() error {
		j, err := k.mine(id)
		if err == nil && j.request.Script == "" {
			err = refusal("Job script not specified")
		}
		if err == nil {
			text = j.request.Script
		}
		return err
	})
	return text, err
}

// Reconfigure is as of slurmctl.Client: leaked nodes are found again.
func (k *Client) Reconfigure(ctx context.Context) error {
	return k.change(ctx, func() error {
		for i := range k.cluster.nodes {
			k.cluster.nodes[i].leaked = false
		}
		k.cluster.touch()
		k.cluster.kick()
		return nil
	})
}

func (k *Client) reserving(ctx context.Context, f func() error) error {
	return k.change(ctx, func() error {
		if k.user.UID != 0 {
			return refusal("Access/permission denied")
		}
		return f()
	})
}

// CreateReservation is as of slurmctl.Client.
func (k *Client) CreateReservation(ctx context.Context, q slurmctl.ReservationRequest) error {
	return k.reserving(ctx, func() error { return k.cluster.reserve(q) })
}

// UpdateReservation is as of slurmctl.Client.
func (k *Client) UpdateReservation(ctx context.Context, name string, u slurmctl.ReservationUpdate) error {
	return k.reserving(ctx, func() error { return k.cluster.alter(name, u) })
}

// DeleteReservation is as of slurmctl.Client.
func (k *Client) DeleteReservation(ctx context.Context, name string) error {
	return k.reserving(ctx, func() error { return k.cluster.unreserve(name) })
}

// Submit is sbatch with a typed request.
func (k *Client) Submit(ctx context.Context, q Job) (id slurmctl.JobID, err error) {
	if q.Script == "" {
		q.Script = "#!/bin/sh\n"
	}
	err = k.change(ctx, func() error {
		id, err = k.cluster.Submit(q)
		return err
	})
	return id, err
}

// Allocate is as of slurmctl.Client; what is left of the context's time is how much
// virtual time the job may be pending.
func (k *Client) Allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.Job, error) {
	c := k.cluster
	patience := slurmctl.DefaultTimeout
	if at, ok := ctx.Deadline(); ok {
		patience = time.Until(at).Round(100 * time.Millisecond)
	}
	u := k.user
	if q.User != nil {
		u = User{Name: q.User.Name, UID: q.User.UID, Account: q.Account}
	}
	request := Job{User: u, Name: q.Name, Comment: q.Comment, Partition: q.Partition, Nodes: q.Nodes, TimeLimit: q.TimeLimit,
		Expand: q.ExpandJob, NodeList: q.NodeList, Exclude: q.Exclude, Reservation: q.Reservation}
	var id slurmctl.JobID
	err := k.call(ctx, c.options.Latency.Salloc, func() (err error) {
		if id, err = c.Submit(request); err == nil && c.first(c.jobs[id]) && c.eligible(c.jobs[id]) {
			c.try(c.jobs[id]) // a new job is tried at once
		}
		return err
	})
	if err != nil {
		return slurmctl.Job{}, err
	}
	for end := c.now.Add(patience); ; c.pass(100 * time.Millisecond) {
		j := c.jobs[id]
		if j.State == slurmctl.Running {
			return c.shown(j), nil
		}
		if !c.now.Before(end) || j.State != slurmctl.Pending {
			err := errors.Join(context.DeadlineExceeded, k.Cancel(context.WithoutCancel(ctx), id))
			return slurmctl.Job{ID: id}, fmt.Errorf("salloc: job %d is %s (%s): %w", id, j.State, j.Reason, err)
		}
	}
}

// first says whether no other pending job stands before this one: Slurm tries such a
// job when it comes in. Those in reservations are not compared with others.
func (c *Cluster) first(j *job) bool {
	for _, id := range c.order {
		o := c.jobs[id]
		if o != j && o.State == slurmctl.Pending && o.Reservation == j.Reservation && o.Priority > j.Priority && o.Partition == j.Partition &&
			o.Priority > 0 && !o.request.Begin.After(c.now) {
			return false
		}
	}
	return true
}
