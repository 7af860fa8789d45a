package slurmsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// allocateLook is the interval at which a pending allocation is checked.
const allocateLook = 100 * time.Millisecond

// limitSeen is how long a limit must block an allocation before Allocate gives up.
const limitSeen = time.Second

// asked returns the job that an allocation requests.
func asked(k *Client, q slurmctl.AllocateRequest) Job {
	u := k.user
	if q.User != nil {
		u = User{Name: q.User.Name, UID: q.User.UID, Account: q.Account}
	}
	request := Job{User: u, Name: q.Name, Comment: q.Comment, Partition: q.Partition, QOS: q.QOS, Nodes: q.Nodes, TimeLimit: q.TimeLimit,
		Expand: q.ExpandJob, NodeList: q.NodeList, Exclude: q.Exclude, Constraint: q.Constraint, Reservation: q.Reservation}
	request.MemoryPerNode, request.MemoryPerCPU, request.GRES = q.MemoryPerNode, q.MemoryPerCPU, q.GRES
	request.Layout = slurmctl.Layout{Sockets: uint16(q.SocketsPerNode), Cores: uint16(q.CoresPerSocket), Threads: uint16(q.ThreadsPerCore)}
	if u.Account == "" {
		for _, known := range k.cluster.Users {
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

// MayAllocate does what slurmctl.Client.MayAllocate does.
func (k *Client) MayAllocate(ctx context.Context, q slurmctl.AllocateRequest) error {
	return call(ctx, k, k.cluster.options.Latency.Look, Command{Name: "MayAllocate"}, func() error {
		see := k.cluster.options.Plugin.Submit
		if see == nil {
			return nil
		}
		j := asked(k, q)
		j.Expand, j.NodeList, j.Reservation = 0, nil, ""
		return submitted("srun", "Unable to allocate resources: ", see(&j))
	})
}

// Allocate does what slurmctl.Client.Allocate does. The job may be pending for the rest of the
// context's time.
func (k *Client) Allocate(ctx context.Context, q slurmctl.AllocateRequest) (slurmctl.Job, error) {
	if q.Name == "" {
		return slurmctl.Job{}, slurmctl.ErrNoName
	}
	c := k.cluster
	a := allocation{cluster: c, ctx: ctx, end: c.Moment + patience(ctx)}
	request := asked(k, q)
	if q.Parked {
		request.NodeList, request.Reservation, request.Begin = nil, "", c.Now().Add(forever)
	}
	command := Command{Name: "Allocate", About: q.Name}
	if q.ExpandJob != 0 {
		command.Jobs = []slurmctl.JobID{q.ExpandJob}
	}
	err := runCommand(ctx, k, c.options.Latency.Salloc, command, func(done func(error)) {
		a.done = done
		var err error
		if a.id, err = c.Submit(request); err != nil {
			done(submitted("salloc", "Job submit/allocate failed: ", err))
			return
		}
		if q.Parked {
			if err = letGo(c, a.id, q.Reservation); err != nil {
				done(err)
				return
			}
		}
		a.look()
	})
	if err == nil {
		return a.got, nil
	}
	if errors.Is(err, errTimeout) { // the answer never came, so the job is unknown
		return slurmctl.Job{}, err
	}
	if a.reason != "" && a.got.ID == 0 {
		err = &slurmctl.PendingError{Job: a.id, Reason: a.reason, Err: err}
	}
	if a.id != 0 {
		err = errors.Join(err, k.CancelAs(context.WithoutCancel(ctx), q.User, a.id))
	}
	return slurmctl.Job{ID: a.id}, err
}

// allocation is an allocation that a client waits for.
type allocation struct {
	cluster *Cluster
	ctx     context.Context
	end     time.Duration // when the client gives up
	done    func(error)

	id      slurmctl.JobID
	got     slurmctl.Job
	reason  string        // last reason for which the job waited
	limited time.Duration // since when a limit has blocked it; 0 if none does
}

// look checks whether the job has started, and looks again later if it may start.
func (a *allocation) look() {
	c := a.cluster
	j := c.Jobs[a.id]
	switch {
	case j == nil || j.Ended() || j.State == slurmctl.Completing:
		a.done(fmt.Errorf("job %d: %w", a.id, slurmctl.ErrAlreadyDone))
		return
	case j.State != slurmctl.Pending:
		a.got = shown(c, j)
		a.done(nil)
		return
	}
	a.reason = j.Reason
	atLimit := slurmctl.KindOf(j.Reason) == slurmctl.LimitReason
	switch {
	case c.Moment >= a.end || a.ctx.Err() != nil:
		a.done(context.DeadlineExceeded)
		return
	case !atLimit:
		a.limited = 0
	case a.limited == 0:
		a.limited = c.Moment
	case c.Moment-a.limited >= limitSeen:
		a.done(errors.New("given up"))
		return
	}
	c.After(allocateLook, a.look)
}

// letGo puts a parked allocation into its reservation, to start now.
func letGo(c *Cluster, id slurmctl.JobID, reservation string) error {
	j := c.Jobs[id]
	u := Update{JobUpdate: slurmctl.JobUpdate{StartNow: true, Reservation: &reservation}}
	if see := c.options.Plugin.Update; see != nil {
		if err := see(shown(c, j), &u); err != nil {
			u = Update{u.JobUpdate, j.Account} // as changing does
			if err = see(shown(c, j), &u); err != nil {
				return err
			}
		}
	}
	return update(c, j, u.JobUpdate)
}
