package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Slurm is the part of Slurm that the sidecar needs; [slurmctl.Client] implements it for a live
// one.
type Slurm interface {
	Config(context.Context) (slurmctl.Config, error)
	Topology(context.Context) (slurmctl.Topology, error)
	Federation(context.Context) (string, error)
	Nodes(context.Context) ([]slurmctl.Node, []slurmctl.Partition, error)
	Reservations(context.Context) ([]slurmctl.Reservation, error)
	Jobs(context.Context) ([]slurmctl.Job, error)
	Glance(context.Context, ...slurmctl.JobID) ([]slurmctl.Job, error)
	Named(ctx context.Context, uid uint32, name string) ([]slurmctl.Job, error)
	Request(context.Context, slurmctl.JobID, slurmctl.Config) (slurmctl.JobRequest, error)
	ScriptNode(context.Context, slurmctl.JobID) (string, error)
	BatchScript(context.Context, slurmctl.JobID) (string, error)
	Limits(context.Context, slurmctl.Config, ...string) (*slurmctl.Limits, error)
	Licenses(context.Context) ([]slurmctl.LicenseStock, error)
	AccrueTimes(context.Context) (map[slurmctl.JobID]time.Time, error)
	TimeUsed(context.Context, slurmctl.JobID) (time.Duration, error)
	Backfill(context.Context) (busy bool, ended time.Time, err error)
	Slurmdbd(context.Context) error
	LookupUser(uid uint32) (*slurmctl.User, error)
	InGroups(u *slurmctl.User, groups []string) ([]string, error)

	Allocate(context.Context, slurmctl.AllocateRequest) (slurmctl.Job, error)
	Merge(context.Context, slurmctl.JobID) error
	Shrink(context.Context, slurmctl.JobID, []string) error
	UpdateJob(context.Context, slurmctl.JobID, slurmctl.JobUpdate) error
	UpdateTasks(context.Context, slurmctl.JobID, string, slurmctl.JobUpdate) error
	Cancel(context.Context, ...slurmctl.JobID) error
	Requeue(context.Context, slurmctl.JobID) error
	Complete(context.Context, ...slurmctl.JobID) error
	CancelAs(context.Context, *slurmctl.User, ...slurmctl.JobID) error
	TryUpdate(context.Context, slurmctl.JobID, time.Time) error
	MayAllocate(context.Context, slurmctl.AllocateRequest) error
	Signal(context.Context, string, slurmctl.SignalOptions, ...slurmctl.JobID) ([]slurmctl.JobID, error)
	CreateReservation(context.Context, slurmctl.ReservationRequest) error
	UpdateReservation(context.Context, string, slurmctl.ReservationUpdate) error
	DeleteReservation(context.Context, string) error
	PowerUp(context.Context, []string) error
	KeepUp(context.Context, []string) error
	PowerDown(context.Context, []string) error
	DrainNodes(ctx context.Context, nodes []string, reason string) error
	Contact(context.Context, []string) error
	Reconfigure(context.Context) error

	Calls() uint64
	WantsAccount() bool
}

// Driver carries out commands. It is safe for concurrent use.
type Driver struct {
	Slurm   Slurm
	Now     func() time.Time                     // by a clock that is never set: the core's
	Machine func() time.Time                     // the machine's
	Pause   func(context.Context, time.Duration) // at most until ctx is done
	// Together runs some commands at once and waits for all.
	Together func(ctx context.Context, run ...func(context.Context))
	// WithTimeout is context.WithTimeout by the same clock.
	WithTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)

	clock    slurmClock
	backfill backfill
	marks    marks
}

// New returns a driver of a live Slurm; now is the core's clock.
func New(slurm Slurm, now func() time.Time) *Driver {
	return &Driver{Slurm: slurm, Now: now, Machine: time.Now, WithTimeout: context.WithTimeout, Pause: func(ctx context.Context, d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}, Together: func(ctx context.Context, run ...func(context.Context)) {
		var all sync.WaitGroup
		for _, f := range run {
			all.Go(func() { f(ctx) })
		}
		all.Wait()
	}}
}

// Run carries out a task. If the context polls ends, it stops waiting for what only a poll would
// find out. The comment of the command describes the result, which is also returned with an error.
func (d *Driver) Run(ctx, polls context.Context, t msg.Task) (result any, err error) {
	if t.Gently {
		if err := d.resting(ctx); err != nil {
			return nil, err
		}
	}
	switch c := t.Command.(type) {
	case msg.Start:
		return d.start(ctx, polls, c)
	case msg.Grow:
		return d.grow(ctx, c)
	case msg.Shrink:
		return d.shrink(ctx, c)
	case msg.Detach:
		err := d.leaveHold(ctx, c.Job, c.Inside)
		if err == nil && c.GiveUp {
			err = ignoreUnknown(d.Slurm.DeleteReservation(ctx, c.Hold))
		}
		return nil, err
	case msg.Update:
		if c.As != 0 {
			u, err := d.Slurm.LookupUser(c.As)
			if err != nil {
				return nil, err
			}
			c.Change.As = u
		}
		return nil, d.Slurm.UpdateJob(ctx, c.Job, c.Change)
	case msg.Unfold:
		var err error
		if c.RestName != "" {
			err = d.Slurm.UpdateJob(ctx, c.Array, slurmctl.JobUpdate{Name: c.RestName})
		}
		if err == nil {
			err = d.Slurm.UpdateTasks(ctx, c.Array, c.Tasks, slurmctl.JobUpdate{Name: c.Name})
		}
		return nil, err
	case msg.ExtendLimits:
		for _, p := range c.Parts {
			if err := d.Slurm.UpdateJob(ctx, p.Job, slurmctl.JobUpdate{TimeLimit: p.Limit}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	case msg.Signal:
		return d.Slurm.Signal(ctx, c.Name, slurmctl.SignalOptions{Full: true}, c.Jobs...)
	case msg.Cancel:
		if c.Done {
			return nil, d.Slurm.Complete(ctx, c.Jobs...)
		}
		return nil, d.Slurm.Cancel(ctx, c.Jobs...)
	case msg.Requeue:
		var err error
		if len(c.Beside) > 0 {
			err = d.Slurm.Complete(ctx, c.Beside...)
		}
		if err == nil {
			err = d.Slurm.Requeue(ctx, c.Job)
		}
		return nil, err
	case msg.Ask:
		return resultOf(d.Slurm.Glance(ctx, c.Jobs...))
	case msg.Reserve:
		return nil, d.Slurm.CreateReservation(ctx, c.Request)
	case msg.ChangeHold:
		return nil, d.Slurm.UpdateReservation(ctx, c.Name, c.Change)
	case msg.GiveUpHold:
		for _, o := range c.TakeOut {
			if err := d.Slurm.UpdateJob(ctx, o.Job, slurmctl.JobUpdate{Reservation: &o.Rest}); err != nil {
				return nil, err
			}
		}
		return nil, ignoreUnknown(d.Slurm.DeleteReservation(ctx, c.Name))
	case msg.ReadRequest:
		asked := msg.Asked{}
		if asked.User, asked.UserErr = d.Slurm.LookupUser(c.UID); asked.UserErr == nil && len(c.Groups) > 0 {
			asked.Groups, asked.UserErr = d.Slurm.InGroups(asked.User, c.Groups)
		}
		if asked.Request, err = d.Slurm.Request(ctx, c.Job, c.Config); err == nil && !c.Try.IsZero() {
			if err = d.Slurm.TryUpdate(ctx, c.Job, c.Try); err != nil {
				err = fmt.Errorf("the site refuses to have it changed, so it could never start: %w", err)
			} else if gres, bad := asked.Request.GRESPerNode(c.First); bad == nil && c.Growth > 0 && (c.Own || asked.User != nil) {
				as := asked.User
				if c.Own {
					as = nil
				}
				if err = request.MayGrow(ctx, d.Slurm, asked.Request, c.Growth, gres, as); err != nil {
					err = fmt.Errorf("%w: %w", msg.ErrSiteRefuses, err)
				}
			}
		}
		if err == nil && c.Running {
			asked.Script, err = d.Slurm.ScriptNode(ctx, c.Job)
			if used, usedErr := d.Slurm.TimeUsed(ctx, c.Job); usedErr == nil { // otherwise it is queried once the job is adopted
				asked.Used = used
			}
		}
		return asked, err
	case msg.ReadScript:
		text, err := d.Slurm.BatchScript(ctx, c.Job)
		read := msg.Scripted{}
		if err == nil {
			read.Request, read.Asked, read.Err = request.FromStoredText(text)
		}
		return read, err
	case msg.ReadLimits:
		return resultOf(d.Slurm.Limits(ctx, c.Config))
	case msg.ReadLicenses:
		return resultOf(d.Slurm.Licenses(ctx))
	case msg.ReadAccrual:
		return resultOf(d.Slurm.AccrueTimes(ctx))
	case msg.ReadTimeUsed:
		return resultOf(d.Slurm.TimeUsed(ctx, c.Job))
	case msg.PowerUp:
		return nil, d.Slurm.PowerUp(ctx, c.Nodes)
	case msg.KeepUp:
		return nil, d.Slurm.KeepUp(ctx, c.Nodes)
	case msg.PowerDown:
		return nil, d.Slurm.PowerDown(ctx, c.Nodes)
	case msg.DrainNodes:
		return nil, d.Slurm.DrainNodes(ctx, c.Nodes, c.Reason)
	case msg.Contact:
		return nil, d.contact(ctx, c.Nodes)
	case msg.Reconfigure:
		return nil, d.Slurm.Reconfigure(ctx)
	}
	return nil, fmt.Errorf("drive: unknown command %T", t.Command)
}

// answersWithin is how long an idle node takes to answer: slurmctld asks within a second.
const answersWithin = 2 * time.Second

// contact makes Slurm ask idle nodes to answer, and then start what waited for them: by itself, it would do that in its
// next cycle, which may be a minute away. KeepUp changes nodes that have answered, and so causes a cycle.
func (d *Driver) contact(ctx context.Context, nodes []string) error {
	if err := d.Slurm.Contact(ctx, nodes); err != nil {
		return err
	}
	d.Pause(ctx, answersWithin)
	return d.Slurm.KeepUp(ctx, nodes)
}

// resultOf returns an answer as a result, which there is none of with an error.
func resultOf[T any](answer T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// ignoreUnknown is err unless it says that a reservation is gone already.
func ignoreUnknown(err error) error {
	if errors.Is(err, slurmctl.ErrUnknownReservation) {
		return nil
	}
	return err
}

// shrink gives nodes back, first those of companions, newest first.
func (d *Driver) shrink(ctx context.Context, c msg.Shrink) ([]msg.Part, error) {
	held := c.Held
	for i := len(held) - 1; i >= 0; i-- {
		keep := msg.Without(held[i].Nodes, c.Surplus)
		switch {
		case len(keep) == len(held[i].Nodes):
		case len(keep) == 0 && i > 0:
			if err := d.Slurm.Complete(ctx, held[i].ID); err != nil {
				return held, err
			}
			held = append(held[:i:i], held[i+1:]...)
		default:
			if c.NeedsDBD {
				if err := d.Slurm.Slurmdbd(ctx); err != nil {
					return held, err
				}
			}
			if err := d.Slurm.Shrink(ctx, held[i].ID, keep); err != nil {
				return held, err
			}
			held = append(held[:0:0], held...)
			held[i].Nodes = keep
		}
	}
	return held, nil
}
