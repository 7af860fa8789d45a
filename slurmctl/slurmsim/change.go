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

func about(name string, ids ...slurmctl.JobID) Command { return Command{Name: name, Jobs: ids} }

// UpdateJob does what slurmctl.Client.UpdateJob does.
func (k *Client) UpdateJob(ctx context.Context, id slurmctl.JobID, u slurmctl.JobUpdate) error {
	return k.changing(ctx, k.cluster.options.Latency.Change, "UpdateJob", id, u, k.cluster.update)
}

// update applies all of u to a job, or nothing.
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
		r.used = c.Now()
	}
	part, several := c.partitionsOf(u.Partition)
	if u.Partition != "" && part == nil {
		return refusal("Invalid partition name specified")
	}
	if u.Dependency != nil {
		if err := c.depend(j, *u.Dependency); err != nil {
			return err
		}
	}
	switch {
	case u.StartNow:
		j.request.Begin, j.StartTime = c.second(), c.second()
	case !u.StartTime.IsZero():
		j.request.Begin, j.StartTime = u.StartTime, u.StartTime
	}
	if u.Reservation != nil {
		if r := c.reservation(j.Reservation); r != nil {
			r.used = c.Now()
		}
		j.Reservation = *u.Reservation
	}
	if u.TimeLimit != 0 {
		j.TimeLimit = u.TimeLimit
		if u.TimeLimit != slurmctl.Unlimited {
			j.TimeLimit = (u.TimeLimit + time.Minute - 1).Truncate(time.Minute)
		}
		if j.active() {
			c.limit(j)
		}
	}
	if !u.EndTime.IsZero() && j.active() {
		j.TimeLimit = (u.EndTime.Sub(j.StartTime) + time.Minute - 1).Truncate(time.Minute)
		c.limit(j)
		j.EndTime, j.ends = u.EndTime, u.EndTime.Unix()
	}
	if u.Partition != "" {
		j.Partition, j.part, j.parts, j.request.Partition = u.Partition, part, several, u.Partition
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
		j.Priority = uint64(max(int64(j.Priority)+int64(j.Nice)-int64(*u.Nice), 1))
		j.Nice, j.request.Nice = *u.Nice, *u.Nice
	}
	c.disorder, c.special = true, true
	c.touch(j)
	c.kick()
	return nil
}

// depend sets a pending job's dependency: "", "afterok:7", "expand:7".
func (c *Cluster) depend(j *job, text string) error {
	kind, rest, _ := strings.Cut(text, ":")
	var id slurmctl.JobID
	if _, err := fmt.Sscan(rest, &id); err != nil && text != "" {
		return refusal("Job dependency problem")
	}
	if kind == "expand" {
		if base := c.jobs[id]; base == nil || base.State != slurmctl.Running {
			return refusal("Job dependency problem")
		}
		j.request.After, j.Dependency, j.expands = nil, "", id
		return nil
	}
	j.request.After, j.Dependency = nil, text
	if text != "" {
		j.request.After = []Dependency{{kind, id}}
	}
	return nil
}

// Merge does what slurmctl.Client.Merge does.
func (k *Client) Merge(ctx context.Context, expander slurmctl.JobID) error {
	return k.changing(ctx, k.cluster.options.Latency.Merge, "Merge", expander, slurmctl.JobUpdate{}, func(j *job, _ slurmctl.JobUpdate) error {
		return k.cluster.merge(j)
	})
}

// Shrink does what slurmctl.Client.Shrink does.
func (k *Client) Shrink(ctx context.Context, id slurmctl.JobID, keep []string) error {
	return k.changing(ctx, k.cluster.options.Latency.Shrink, "Shrink", id, slurmctl.JobUpdate{}, func(j *job, _ slurmctl.JobUpdate) error {
		return k.cluster.shrink(j, keep)
	})
}

// Cancel does what slurmctl.Client.Cancel does.
func (k *Client) Cancel(ctx context.Context, ids ...slurmctl.JobID) error {
	return k.CancelAs(ctx, nil, ids...)
}

// CancelAs does what slurmctl.Client.CancelAs does.
func (k *Client) CancelAs(ctx context.Context, u *slurmctl.User, ids ...slurmctl.JobID) error {
	if len(ids) == 0 {
		return nil
	}
	return k.change(ctx, about("Cancel", ids...), func() error {
		for _, id := range ids {
			j := k.cluster.jobs[id]
			if j == nil || j.Ended() || j.State == slurmctl.Completing {
				continue
			}
			if _, err := k.mine(id); err != nil {
				return err
			}
			if u != nil && u.UID != 0 && u.UID != j.UID {
				return refusal("Access/permission denied")
			}
			k.cluster.finish(j, slurmctl.Cancelled)
		}
		return nil
	})
}

// Signal does what slurmctl.Client.Signal does. A job's program receives the signal from
// [Process.Wait].
func (k *Client) Signal(ctx context.Context, id slurmctl.JobID, name string, _ slurmctl.SignalOptions) error {
	return k.change(ctx, about("Signal", id), func() error {
		j, err := k.mine(id)
		switch {
		case err != nil:
			return err
		case j.Ended() || j.State == slurmctl.Completing:
			return refusal("Job/step already completing or completed")
		case j.State == slurmctl.Running:
			k.cluster.running[id].signal(name)
		}
		return nil
	})
}

// Hold does what slurmctl.Client.Hold does.
func (k *Client) Hold(ctx context.Context, id slurmctl.JobID) error {
	return k.onPending(ctx, about("Hold", id), func(j *job) {
		j.Priority, j.Reason = 0, "JobHeldAdmin"
		if k.user.UID != 0 {
			j.Reason = "JobHeldUser"
		}
	})
}

// Release does what slurmctl.Client.Release does.
func (k *Client) Release(ctx context.Context, id slurmctl.JobID) error {
	return k.onPending(ctx, about("Release", id), func(j *job) {
		if j.Priority == 0 {
			j.Reason = "None"
			k.cluster.prioritise(j)
		}
	})
}

func (k *Client) onPending(ctx context.Context, q Command, f func(*job)) error {
	return k.change(ctx, q, func() error {
		j, err := k.mine(q.Jobs[0])
		if err != nil {
			return err
		}
		if j.State != slurmctl.Pending {
			return refusal("Job is no longer pending execution")
		}
		f(j)
		k.cluster.disorder, k.cluster.special = true, true
		k.cluster.touch(j)
		k.cluster.kick()
		return nil
	})
}

// Suspend does what scontrol suspend does. In the model, a suspended job keeps its nodes, and its
// time stands still.
func (k *Client) Suspend(ctx context.Context, id slurmctl.JobID) error {
	return k.change(ctx, about("Suspend", id), func() error {
		j, err := k.mine(id)
		if err == nil && j.State != slurmctl.Running {
			err = refusal("Job is not running")
		}
		if err != nil {
			return err
		}
		c := k.cluster
		j.epoch++
		j.State = slurmctl.Suspended
		if j.left > 0 {
			j.left = max(j.left-(c.now-j.resumed), 1)
		}
		j.resumed = c.now // start of the suspension
		c.running[id].halt()
		c.touch(j)
		return nil
	})
}

// Resume undoes Suspend and moves the job's limit by the duration of the suspension.
func (k *Client) Resume(ctx context.Context, id slurmctl.JobID) error {
	return k.change(ctx, about("Resume", id), func() error {
		j, err := k.mine(id)
		if err == nil && j.State != slurmctl.Suspended {
			err = refusal("Job is not suspended")
		}
		if err != nil {
			return err
		}
		c := k.cluster
		stood := (c.now - j.resumed).Truncate(time.Second)
		if !j.EndTime.IsZero() {
			j.EndTime = j.EndTime.Add(stood)
		}
		j.ends, c.byEnd = j.ends+int64(stood/time.Second), nil
		j.stood += stood
		j.State, j.resumed = slurmctl.Running, c.now
		c.running[id].resume()
		c.watch(j)
		c.touch(j)
		return nil
	})
}

// Requeue does what scontrol requeue does: it puts a batch job back into the queue.
func (k *Client) Requeue(ctx context.Context, id slurmctl.JobID) error {
	return k.change(ctx, about("Requeue", id), func() error {
		j, err := k.mine(id)
		switch {
		case err != nil:
			return err
		case j.request.Script == "" || !j.active():
			return refusal("Requested operation is presently disabled")
		}
		k.cluster.requeue(j)
		return nil
	})
}

// Reconfigure does what slurmctl.Client.Reconfigure does. It recovers leaked nodes.
func (k *Client) Reconfigure(ctx context.Context) error {
	return k.change(ctx, Command{Name: "Reconfigure"}, func() error {
		c := k.cluster
		for i := range c.nodes {
			c.nodes[i].leaked = false
			c.usable(i)
		}
		c.merged = nil
		c.takeBatchHosts()
		c.changed()
		c.kick()
		return nil
	})
}

func (k *Client) reserving(ctx context.Context, name, of string, f func() error) error {
	return k.change(ctx, Command{Name: name, About: of}, func() error {
		if k.user.UID != 0 {
			return refusal("Access/permission denied")
		}
		return f()
	})
}

// CreateReservation does what slurmctl.Client.CreateReservation does.
func (k *Client) CreateReservation(ctx context.Context, q slurmctl.ReservationRequest) error {
	return k.reserving(ctx, "CreateReservation", q.Name, func() error { return k.cluster.reserve(q) })
}

// UpdateReservation does what slurmctl.Client.UpdateReservation does.
func (k *Client) UpdateReservation(ctx context.Context, name string, u slurmctl.ReservationUpdate) error {
	return k.reserving(ctx, "UpdateReservation", name, func() error { return k.cluster.alter(name, u) })
}

// DeleteReservation does what slurmctl.Client.DeleteReservation does.
func (k *Client) DeleteReservation(ctx context.Context, name string) error {
	return k.reserving(ctx, "DeleteReservation", name, func() error { return k.cluster.unreserve(name) })
}

// Submit does what sbatch does, with a typed request, as the request's user.
func (k *Client) Submit(ctx context.Context, q Job) (id slurmctl.JobID, err error) {
	if q.Script == "" {
		q.Script = "#!/bin/sh\n"
	}
	err = k.change(ctx, Command{Name: "Submit", About: q.Name}, func() (err error) {
		id, err = k.cluster.Submit(q)
		return submitted("sbatch", "Batch job submission failed: ", err)
	})
	return id, err
}

// allocateLook is the interval at which a pending allocation is checked.
const allocateLook = 100 * time.Millisecond

// limitSeen is how long a limit must block an allocation before Allocate gives up.
const limitSeen = time.Second

// asked returns the job that an allocation requests.
func (k *Client) asked(q slurmctl.AllocateRequest) Job {
	u := k.user
	if q.User != nil {
		u = User{Name: q.User.Name, UID: q.User.UID, Account: q.Account}
	}
	request := Job{User: u, Name: q.Name, Comment: q.Comment, Partition: q.Partition, QOS: q.QOS, Nodes: q.Nodes, TimeLimit: q.TimeLimit,
		Expand: q.ExpandJob, NodeList: q.NodeList, Exclude: q.Exclude, Constraint: q.Constraint, Reservation: q.Reservation}
	request.MemoryPerNode, request.MemoryPerCPU, request.GRES = q.MemoryPerNode, q.MemoryPerCPU, q.GRES
	if u.Account == "" {
		for _, known := range k.cluster.users {
			if known.Name == u.Name {
				request.User.Account = known.Account
			}
		}
	}
	if !q.Exclusive {
		request.CPUs = max(q.TasksPerNode, 1) * max(q.CPUsPerTask, 1)
	}
	return request
}

// Allocate does what slurmctl.Client.Allocate does. The job may be pending for the rest of the
// context's time.
func (k *Client) Allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.Job, error) {
	if q.Name == "" {
		return slurmctl.Job{}, slurmctl.ErrNoName
	}
	c := k.cluster
	end := c.now + c.patience(ctx)
	request := k.asked(q)
	if q.Parked {
		request.NodeList, request.Reservation, request.Begin = nil, "", c.Now().Add(forever)
	}
	var got slurmctl.Job
	var id slurmctl.JobID
	var reason string
	command := Command{Name: "Allocate", About: q.Name}
	if q.ExpandJob != 0 {
		command.Jobs = []slurmctl.JobID{q.ExpandJob}
	}
	err := k.run(ctx, c.options.Latency.Salloc, command, func(done func(error)) {
		var err error
		if id, err = c.Submit(request); err != nil {
			done(submitted("salloc", "Job submit/allocate failed: ", err))
			return
		}
		if q.Parked {
			if err = c.letGo(id, q.Reservation); err != nil {
				done(err)
				return
			}
		}
		var limited time.Duration
		var see func()
		see = func() {
			j := c.jobs[id]
			switch {
			case j == nil || j.Ended() || j.State == slurmctl.Completing:
				done(fmt.Errorf("job %d: %w", id, slurmctl.ErrAlreadyDone))
			case j.State != slurmctl.Pending:
				got = c.shown(j)
				done(nil)
			case c.now >= end || ctx.Err() != nil:
				reason = j.Reason
				done(context.DeadlineExceeded)
			case slurmctl.KindOf(j.Reason) == slurmctl.LimitReason && limited > 0 && c.now-limited >= limitSeen:
				reason = j.Reason
				done(errors.New("given up"))
			default:
				if slurmctl.KindOf(j.Reason) != slurmctl.LimitReason {
					limited = 0
				} else if limited == 0 {
					limited = c.now
				}
				reason = j.Reason
				c.after(allocateLook, see)
			}
		}
		see()
	})
	if err == nil {
		return got, nil
	}
	if errors.Is(err, errTimeout) { // the answer never came, so the job is unknown
		return slurmctl.Job{}, err
	}
	if reason != "" && got.ID == 0 {
		err = &slurmctl.PendingError{Job: id, Reason: reason, Err: err}
	}
	if id != 0 {
		err = errors.Join(err, k.CancelAs(context.WithoutCancel(ctx), q.User, id))
	}
	return slurmctl.Job{ID: id}, err
}

// letGo puts a parked allocation into its reservation, to start now.
func (c *Cluster) letGo(id slurmctl.JobID, reservation string) error {
	j := c.jobs[id]
	u := Update{JobUpdate: slurmctl.JobUpdate{StartNow: true, Reservation: &reservation}}
	if see := c.options.Plugin.Update; see != nil {
		if err := see(c.shown(j), &u); err != nil {
			u = Update{u.JobUpdate, j.Account} // as changing does
			if err = see(c.shown(j), &u); err != nil {
				return err
			}
		}
	}
	return c.update(j, u.JobUpdate)
}

// PowerUp does what slurmctl.Client.PowerUp does.
func (k *Client) PowerUp(ctx context.Context, nodes []string) error {
	return k.onNodes(ctx, "PowerUp", nodes, func(i int) { k.cluster.switchOn([]int{i}) })
}

// KeepUp does what slurmctl.Client.KeepUp does.
func (k *Client) KeepUp(ctx context.Context, nodes []string) error {
	return k.onNodes(ctx, "KeepUp", nodes, func(i int) {
		if n := &k.cluster.nodes[i]; n.power == slurmctl.PowerOn {
			n.powered = k.cluster.now
		}
	})
}

func (k *Client) onNodes(ctx context.Context, name string, nodes []string, f func(int)) error {
	return k.change(ctx, Command{Name: name, About: strings.Join(nodes, ",")}, func() error {
		if k.user.UID != 0 {
			return refusal("Access/permission denied")
		}
		set, err := k.cluster.named(nodes)
		if err != nil || set == nil {
			return err
		}
		for _, i := range set.list() {
			f(i)
		}
		k.cluster.changed()
		k.cluster.wake()
		return nil
	})
}

// Limits does what slurmctl.Client.Limits does.
func (k *Client) Limits(ctx context.Context, cfg slurmctl.Config, _ ...string) (*slurmctl.Limits, error) {
	return look(ctx, k, Command{Name: "Limits"}, func() (*slurmctl.Limits, error) {
		return slurmctl.ParseLimits(cfg, k.cluster.limitsText()), nil
	})
}

// accrues returns since when a job's age counts.
func (j *job) accrues() time.Time {
	since := j.SubmitTime
	if j.request.Begin.After(since) {
		since = j.request.Begin
	}
	return since
}

// used returns how long a job has run.
func (c *Cluster) used(j *job) time.Duration {
	switch {
	case j.StartTime.IsZero() || j.State == slurmctl.Pending:
		return 0
	case j.State == slurmctl.Suspended:
		return c.second().Sub(j.StartTime) - j.stood - (c.now - j.resumed).Truncate(time.Second)
	case j.active():
		return c.second().Sub(j.StartTime) - j.stood
	}
	return j.EndTime.Sub(j.StartTime) - j.stood
}

// leaving returns the completing jobs.
func (c *Cluster) leaving() []*job {
	var all []*job
	for _, j := range c.ending {
		if j.State == slurmctl.Completing {
			all = append(all, j)
		}
	}
	return all
}

// features reports whether a node has all features of "a" or "a&b", or at least one of "a|b".
func (c *Cluster) features(n int, wanted string) bool {
	for one := range strings.SplitSeq(wanted, "|") {
		all := true
		for f := range strings.SplitSeq(one, "&") {
			all = all && slices.Contains(c.nodes[n].Features, strings.TrimSpace(f))
		}
		if all {
			return true
		}
	}
	return false
}
