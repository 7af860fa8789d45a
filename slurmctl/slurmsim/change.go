package slurmsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// UpdateJob does what slurmctl.Client.UpdateJob does.
func (k *Client) UpdateJob(ctx context.Context, id slurmctl.JobID, u slurmctl.JobUpdate) error {
	return changing(ctx, k, k.cluster.options.Latency.Change, "UpdateJob", id, u, func(j *job, u slurmctl.JobUpdate) error { return updateAll(k.cluster, j, u) })
}

// UpdateTasks does what slurmctl.Client.UpdateTasks does, for tasks such as "1-32" and "7".
func (k *Client) UpdateTasks(ctx context.Context, array slurmctl.JobID, tasks string, u slurmctl.JobUpdate) error {
	var low, high int
	if n, _ := fmt.Sscanf(tasks, "%d-%d", &low, &high); n < 2 {
		high = low
	}
	return changing(ctx, k, k.cluster.options.Latency.Change, "UpdateTasks", array, u, func(_ *job, u slurmctl.JobUpdate) error {
		found, err := k.cluster.tasks(array, low, high)
		for _, j := range found {
			err = errors.Join(err, update(k.cluster, j, u))
		}
		return err
	})
}

// TryUpdate does what slurmctl.Client.TryUpdate does.
func (k *Client) TryUpdate(ctx context.Context, id slurmctl.JobID, start time.Time) error {
	err := k.UpdateJob(ctx, id, slurmctl.JobUpdate{StartTime: start})
	if errors.Is(err, slurmctl.ErrUnreachable) {
		return err
	}
	if !refusedUpdate(err) {
		return nil
	}
	if jobs, failed := k.Glance(ctx, id); failed == nil && len(jobs) == 1 && jobs[0].State == slurmctl.Pending {
		return err
	}
	return nil
}

// Merge does what slurmctl.Client.Merge does.
func (k *Client) Merge(ctx context.Context, expander slurmctl.JobID) error {
	return changing(ctx, k, k.cluster.options.Latency.Merge, "Merge", expander, slurmctl.JobUpdate{}, func(j *job, _ slurmctl.JobUpdate) error {
		return merge(k.cluster, j)
	})
}

// Shrink does what slurmctl.Client.Shrink does.
func (k *Client) Shrink(ctx context.Context, id slurmctl.JobID, keep []string) error {
	return changing(ctx, k, k.cluster.options.Latency.Shrink, "Shrink", id, slurmctl.JobUpdate{}, func(j *job, _ slurmctl.JobUpdate) error {
		return shrink(k.cluster, j, keep)
	})
}

// Cancel does what slurmctl.Client.Cancel does.
func (k *Client) Cancel(ctx context.Context, ids ...slurmctl.JobID) error {
	return k.CancelAs(ctx, nil, ids...)
}

// Complete does what slurmctl.Client.Complete does on a machine with Slurm's Perl interface.
func (k *Client) Complete(ctx context.Context, ids ...slurmctl.JobID) error {
	return k.end(ctx, slurmctl.Completed, nil, ids)
}

// CancelAs does what slurmctl.Client.CancelAs does.
func (k *Client) CancelAs(ctx context.Context, u *slurmctl.User, ids ...slurmctl.JobID) error {
	return k.end(ctx, slurmctl.Cancelled, u, ids)
}

// end ends jobs in a state, as a user (nil for the client's).
func (k *Client) end(ctx context.Context, state slurmctl.JobState, u *slurmctl.User, ids []slurmctl.JobID) error {
	if len(ids) == 0 {
		return nil
	}
	return change(ctx, k, about("Cancel", ids...), func() error {
		for _, id := range ids {
			j := k.cluster.Jobs[id]
			if j == nil || j.Ended() || j.State == slurmctl.Completing {
				continue
			}
			if _, err := ownJob(k, id); err != nil {
				return err
			}
			if u != nil && u.UID != 0 && u.UID != j.UID {
				return refusal("Access/permission denied")
			}
			if j.ArrayTasks > 1 {
				for _, task := range others(k.cluster, j) {
					end(k.cluster, task, state, true)
				}
			}
			end(k.cluster, j, state, true)
		}
		return nil
	})
}

// Signal does what slurmctl.Client.Signal does. A job's program receives the signal from
// [Process.Wait].
func (k *Client) Signal(ctx context.Context, name string, _ slurmctl.SignalOptions, ids ...slurmctl.JobID) ([]slurmctl.JobID, error) {
	err := change(ctx, k, about("Signal", ids...), func() error {
		for _, id := range ids {
			j, err := ownJob(k, id)
			if err != nil && !errors.Is(err, slurmctl.ErrUnknownJob) {
				return err
			}
			if err == nil && j.State == slurmctl.Running {
				k.cluster.Scripts[id].signal(name)
			}
		}
		return nil
	})
	if err != nil {
		return ids, err
	}
	return nil, nil
}

// Hold does what slurmctl.Client.Hold does.
func (k *Client) Hold(ctx context.Context, id slurmctl.JobID) error {
	return onPending(ctx, k, about("Hold", id), func(j *job) {
		j.Priority, j.Reason = 0, "JobHeldAdmin"
		if !k.user.may() {
			j.Reason = "JobHeldUser"
		}
	})
}

// Release does what slurmctl.Client.Release does.
func (k *Client) Release(ctx context.Context, id slurmctl.JobID) error {
	return onPending(ctx, k, about("Release", id), func(j *job) {
		if j.Priority == 0 {
			j.Reason = "None"
			prioritise(k.cluster, j)
		}
	})
}

func onPending(ctx context.Context, k *Client, q Command, f func(*job)) error {
	return change(ctx, k, q, func() error {
		j, err := ownJob(k, q.Jobs[0])
		if err != nil {
			return err
		}
		if j.State != slurmctl.Pending {
			return refusal("Job is no longer pending execution")
		}
		f(j)
		k.cluster.Disorder, k.cluster.Special = true, true
		k.cluster.touch(j)
		k.cluster.kick()
		return nil
	})
}

// SetJobLicenses does what scontrol update JobId=… Licenses=… does for a running job: no look at how many are in use (update_job).
func (k *Client) SetJobLicenses(ctx context.Context, id slurmctl.JobID, text string) error {
	return change(ctx, k, about("SetJobLicenses", id), func() error {
		j, err := ownJob(k, id)
		if err == nil && j.State != slurmctl.Running {
			err = refusal("Job is not running")
		}
		if err != nil {
			return err
		}
		j.Licenses = text
		k.cluster.touch(j)
		k.cluster.changed()
		k.cluster.kick()
		return nil
	})
}

// Suspend does what scontrol suspend does. In the model, a suspended job keeps its nodes, and its
// time stands still.
func (k *Client) Suspend(ctx context.Context, id slurmctl.JobID) error {
	return change(ctx, k, about("Suspend", id), func() error {
		j, err := ownJob(k, id)
		if err == nil && j.State != slurmctl.Running {
			err = refusal("Job is not running")
		}
		if err != nil {
			return err
		}
		c := k.cluster
		j.Epoch++
		j.State = slurmctl.Suspended
		if j.Left > 0 {
			j.Left = max(j.Left-(c.Moment-j.Resumed), 1)
		}
		j.Resumed = c.Moment // start of the suspension
		c.Scripts[id].halt()
		c.touch(j)
		return nil
	})
}

// Resume undoes Suspend and moves the job's limit by the duration of the suspension.
func (k *Client) Resume(ctx context.Context, id slurmctl.JobID) error {
	return change(ctx, k, about("Resume", id), func() error {
		j, err := ownJob(k, id)
		if err == nil && j.State != slurmctl.Suspended {
			err = refusal("Job is not suspended")
		}
		if err != nil {
			return err
		}
		c := k.cluster
		stood := (c.Moment - j.Resumed).Truncate(time.Second)
		if !j.EndTime.IsZero() {
			j.EndTime = j.EndTime.Add(stood)
		}
		j.Ends, c.ByEnd = j.Ends+int64(stood/time.Second), nil
		j.Stood += stood
		j.State, j.Resumed = slurmctl.Running, c.Moment
		c.Scripts[id].resume()
		watchEnd(c, j)
		c.touch(j)
		return nil
	})
}

// Requeue does what scontrol requeue does: it puts a batch job back into the queue.
func (k *Client) Requeue(ctx context.Context, id slurmctl.JobID) error {
	return change(ctx, k, about("Requeue", id), func() error {
		j, err := ownJob(k, id)
		switch {
		case err != nil:
			return err
		case j.Request.Script == "" || !j.active():
			return refusal("Requested operation is presently disabled")
		}
		requeue(k.cluster, j)
		return nil
	})
}

// Reconfigure does what slurmctl.Client.Reconfigure does. It recovers leaked nodes.
func (k *Client) Reconfigure(ctx context.Context) error {
	return change(ctx, k, Command{Name: "Reconfigure"}, func() error {
		c := k.cluster
		for i := range c.Nodes {
			c.Nodes[i].Leaked, c.Nodes[i].Shrunk = false, false
			c.Refused.drop(i)
			c.usable(i)
		}
		c.Merged = nil
		takeBatchHosts(c)
		c.changed()
		c.kick()
		return nil
	})
}

func reserving(ctx context.Context, k *Client, name, of string, f func() error) error {
	return change(ctx, k, Command{Name: name, About: of}, func() error {
		if !k.user.may() {
			return refusal("Access/permission denied")
		}
		return f()
	})
}

// CreateReservation does what slurmctl.Client.CreateReservation does.
func (k *Client) CreateReservation(ctx context.Context, q slurmctl.ReservationRequest) error {
	return reserving(ctx, k, "CreateReservation", q.Name, func() error { return createReservation(k.cluster, q) })
}

// UpdateReservation does what slurmctl.Client.UpdateReservation does.
func (k *Client) UpdateReservation(ctx context.Context, name string, u slurmctl.ReservationUpdate) error {
	return reserving(ctx, k, "UpdateReservation", name, func() error { return updateReservation(k.cluster, name, u) })
}

// DeleteReservation does what slurmctl.Client.DeleteReservation does.
func (k *Client) DeleteReservation(ctx context.Context, name string) error {
	return reserving(ctx, k, "DeleteReservation", name, func() error { return deleteReservation(k.cluster, name) })
}

// Submit does what sbatch does, with a typed request, as the request's user.
func (k *Client) Submit(ctx context.Context, q Job) (id slurmctl.JobID, err error) {
	if q.Script == "" {
		q.Script = "#!/bin/sh\n"
	}
	err = change(ctx, k, Command{Name: "Submit", About: q.Name}, func() (err error) {
		id, err = k.cluster.Submit(q)
		return submitted("sbatch", "Batch job submission failed: ", err)
	})
	return id, err
}

// PowerUp does what slurmctl.Client.PowerUp does.
func (k *Client) PowerUp(ctx context.Context, nodes []string) error {
	return onNodes(ctx, k, "PowerUp", nodes, func(i int) { k.cluster.switchOn([]int{i}, k.cluster.Moment) })
}

// PowerDown does what slurmctl.Client.PowerDown does.
func (k *Client) PowerDown(ctx context.Context, nodes []string) error {
	return onNodes(ctx, k, "PowerDown", nodes, func(i int) {
		if c := k.cluster; c.Up.has(i) && c.Usage.Idle.has(i) && !c.Completing.has(i) && c.Nodes[i].PowerState == slurmctl.PowerOn {
			c.Nodes[i].PowerState, c.Nodes[i].Powered = slurmctl.PowerDrain, c.Moment
			c.usable(i)
		}
	})
}

// DrainNodes does what slurmctl.Client.DrainNodes does.
func (k *Client) DrainNodes(ctx context.Context, nodes []string, _ string) error {
	return onNodes(ctx, k, "DrainNodes", nodes, func(i int) { k.cluster.SetNode(k.cluster.Nodes[i].Name, k.cluster.Nodes[i].Down, true) })
}

// KeepUp does what slurmctl.Client.KeepUp does.
func (k *Client) KeepUp(ctx context.Context, nodes []string) error {
	return onNodes(ctx, k, "KeepUp", nodes, func(i int) {
		if n := &k.cluster.Nodes[i]; n.PowerState == slurmctl.PowerOn {
			n.Powered = k.cluster.Moment
		}
	})
}

// Contact does what slurmctl.Client.Contact does.
func (k *Client) Contact(ctx context.Context, nodes []string) error {
	return onNodes(ctx, k, "Contact", nodes, func(i int) {
		if c := k.cluster; c.Up.has(i) && c.Usage.Idle.has(i) && !c.Completing.has(i) && c.Nodes[i].PowerState == slurmctl.PowerOn {
			c.Asked.add(i)
			c.Later(time.Second, answers{c.Boot, i})
		}
	})
}

func onNodes(ctx context.Context, k *Client, name string, nodes []string, f func(int)) error {
	return change(ctx, k, Command{Name: name, About: strings.Join(nodes, ",")}, func() error {
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
		return slurmctl.ParseLimits(cfg, limitsText(k.cluster)), nil
	})
}
