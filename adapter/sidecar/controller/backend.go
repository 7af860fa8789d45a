package controller

import (
	"context"
	"slices"
	"sync"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Status implements api.Backend.
func (c *Controller) Status(context.Context) (api.Status, error) {
	status := c.view.Load().Status
	status.Lease = c.leaseNow()
	return status, nil
}

// Jobs implements api.Backend.
func (c *Controller) Jobs(_ context.Context, all bool) ([]api.Job, error) {
	v := c.view.Load()
	if v.Status.LastCycle.IsZero() && len(v.Jobs) == 0 && !(all && len(v.Ended) > 0) {
		text := "the sidecar has just started and has not seen Slurm's jobs yet"
		if v.Status.LastError != "" {
			text += ": " + v.Status.LastError
		}
		return nil, api.Errorf(api.ErrUnavailable, "%s", text)
	}
	if all {
		return slices.Concat(v.Ended, v.Jobs), nil
	}
	return slices.Clone(v.Jobs), nil
}

// Cluster implements api.Backend.
func (c *Controller) Cluster(context.Context) (*api.Cluster, error) {
	v := c.view.Load()
	if v.cluster == nil {
		return nil, api.Errorf(api.ErrUnavailable, "the sidecar has just started and has not seen the cluster yet")
	}
	return v.cluster, nil
}

// Job implements api.Backend.
func (c *Controller) Job(_ context.Context, id uint32) (api.Job, error) {
	v := c.view.Load()
	base := v.Base[id]
	for _, list := range [][]api.Job{v.Jobs, v.Ended} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].ID == base {
				return list[i], nil
			}
		}
	}
	return api.Job{}, v.unknown(id)
}

// unknown returns the error for an unknown job. Before the first poll of Slurm, the sidecar knows
// no job, and says so; a job that it has seen will soon be known.
func (v *view) unknown(id uint32) error {
	if v.Status.LastCycle.IsZero() || v.Coming[id] {
		return api.NotSeen(id)
	}
	return api.Unknown(id)
}

// Owner implements api.Backend.
func (c *Controller) Owner(_ context.Context, id uint32) (uint32, error) {
	v := c.view.Load()
	uid, ok := v.Owners[id]
	if !ok {
		return 0, v.unknown(id)
	}
	return uid, nil
}

// Operator reports whether a user may act on all users' jobs: root, SlurmUser, and the site's
// operators.
func (c *Controller) Operator(uid uint32) bool {
	v := c.view.Load()
	return uid == 0 || uid == v.SlurmUser || v.Operators.Allows(uid)
}

// SlurmUser returns whose processes slurmctld's are, or 0 until Slurm has said so.
func (c *Controller) SlurmUser() uint32 { return c.view.Load().SlurmUser }

// ClusterName names the cluster that is driven; "": Slurm has not said yet.
func (c *Controller) ClusterName() string { return c.view.Load().Status.Cluster }

// Reading returns who may read now.
func (c *Controller) Reading() api.Reading { return c.view.Load().Reading }

// calls holds scripts' calls that wait for a reply.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan msg.Reply
}

func (c *calls) begin() (uint64, chan msg.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	reply := make(chan msg.Reply, 1)
	c.waiting[c.last] = reply
	return c.last, reply
}

func (c *calls) end(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *calls) reply(r msg.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply, ok := c.waiting[r.ID]; ok {
		reply <- r
		delete(c.waiting, r.ID)
	}
}

// Allocation implements api.Backend.
func (c *Controller) Allocation(ctx context.Context, id uint32) (api.Allocation, error) {
	r, err := c.ask(ctx, msg.Call{Job: id})
	return r.Allocation, err
}

// Next implements api.Backend.
func (c *Controller) Next(ctx context.Context, id uint32, req api.NextRequest) (api.Allocation, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Next: &req})
	return r.Allocation, err
}

// Change implements api.Backend.
func (c *Controller) Change(ctx context.Context, id uint32, req api.ChangeRequest) (api.Change, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Change: &req})
	if r.Change == nil {
		return api.Change{Job: id}, err
	}
	return *r.Change, err
}

// Offer implements api.Backend.
func (c *Controller) Offer(ctx context.Context, id uint32, q api.OfferQuery) (api.Offer, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Offer: &q})
	if r.Offer == nil {
		return api.Offer{Job: id}, err
	}
	return *r.Offer, err
}

// Answer implements api.Backend.
func (c *Controller) Answer(ctx context.Context, id uint32, req api.AnswerRequest) (api.Answer, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Answer: &req})
	if r.Answer == nil {
		return api.Answer{Job: id, Offer: req.Offer}, err
	}
	return *r.Answer, err
}

// Progress implements api.Backend.
func (c *Controller) Progress(ctx context.Context, id uint32, req api.ProgressReport) (api.Progress, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Progress: &req})
	if r.Progress == nil {
		return api.Progress{Job: id}, err
	}
	return *r.Progress, err
}

// CancelHolds implements api.Backend.
func (c *Controller) CancelHolds(ctx context.Context, id uint32, req api.CancelHolds) (api.Cancelled, error) {
	r, err := c.ask(ctx, msg.Call{Job: id, Cancel: &req})
	if r.Cancelled == nil {
		return api.Cancelled{Job: id, Holds: []api.Span{}}, err
	}
	return *r.Cancelled, err
}

// Place implements api.Backend.
func (c *Controller) Place(ctx context.Context, q api.PlacementQuery) (api.Placement, error) {
	u, err := slurmctl.LookupUser(api.Caller(ctx))
	if err != nil {
		return api.Placement{}, api.Errorf(api.ErrForbidden, "%v", err)
	}
	r, err := c.ask(ctx, msg.Call{Place: &q, User: u.Name})
	if r.Place == nil {
		return api.Placement{}, err
	}
	return *r.Place, err
}

// ask passes a call to the core. A caller that stops waiting gets the current state.
func (c *Controller) ask(ctx context.Context, in msg.Call) (msg.Reply, error) {
	id, reply := c.calls.begin()
	defer c.calls.end(id)
	in.ID, in.UID, in.Hands = id, api.Caller(ctx), api.CallerHands(ctx)
	if !c.give(ctx, in) {
		return msg.Reply{}, errNotRunning
	}
	for done := ctx.Done(); ; done = nil {
		select {
		case r := <-reply:
			return answered(r)
		case <-c.gone:
			select {
			case r := <-reply: // the loop's last word
				return answered(r)
			default:
				return msg.Reply{}, errNotRunning
			}
		case <-done: // it may be answered at this very moment
			c.give(context.WithoutCancel(ctx), msg.Withdrawal{ID: id})
		}
	}
}

func answered(r msg.Reply) (msg.Reply, error) {
	if r.Submit != nil {
		return msg.Reply{}, &api.SubmitFirst{Submission: *r.Submit}
	}
	return r, r.Err
}

// give passes an input to the loop and reports whether it could.
func (c *Controller) give(ctx context.Context, in msg.Input) bool {
	select {
	case c.mail <- in:
		return true
	case <-c.gone:
	case <-ctx.Done():
	}
	return false
}
