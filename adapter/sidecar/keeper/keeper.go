// Package keeper keeps the lease (package lease) of a sidecar that has a second one on another host: it writes
// claims into Slurm (package claims), reads them, and says until when commands may be sent.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/evoslurm/evoslurm/adapter/internal/fence"
	"github.com/evoslurm/evoslurm/adapter/sidecar/claims"
	"github.com/evoslurm/evoslurm/adapter/sidecar/lease"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// othersLimit is how long Others waits for Slurm.
const othersLimit = 3 * time.Second

// ErrLost means that this sidecar may no longer act.
var ErrLost = errors.New("the lease is lost")

// Keeper keeps the lease of this process.
type Keeper struct {
	slurm *slurmctl.Client
	log   *logrus.Logger
	terms lease.Terms
	self  int64
	alive func(context.Context) bool

	mu      sync.Mutex // the rest
	machine *lease.Machine
	until   time.Duration // the right to act ends, by fence.Now
	since   time.Time
	told    string // the last warning
}

// New returns a keeper for a sidecar. takeover is how long after the holder's last renewal another acts.
// slurm must have no fence of its own.
func New(slurm *slurmctl.Client, takeover time.Duration, log *logrus.Logger) *Keeper {
	self, terms := rand.Int64N(claims.Holders), lease.TermsOf(takeover)
	return &Keeper{slurm: &slurmctl.Client{Dir: slurm.Dir, Env: slurm.Env, Timeout: min(slurm.Timeout, terms.Gap), Ran: slurm.Ran}, log: log,
		terms: terms, self: self, machine: lease.New(self, terms)}
}

// Terms returns the durations of the rules.
func (k *Keeper) Terms() lease.Terms { return k.terms }

// Acquire waits until this sidecar holds the lease, and calls waits every few moments. Then Keep must run.
func (k *Keeper) Acquire(ctx context.Context, waits func()) error {
	for first := true; ; first = false {
		waits()
		if err := k.round(ctx); err != nil {
			return err
		}
		switch phase := k.machine.Phase(); {
		case phase == lease.Holding:
			k.log.WithField("lease", claims.Name(k.machine.Epoch())).Info("this sidecar has the lease: it acts")
			k.mu.Lock()
			k.since = time.Now()
			k.mu.Unlock()
			return nil
		case first && phase == lease.Waiting:
			k.log.WithField("claims", len(k.machine.Claims())).Info("waiting for the lease; another sidecar acts, or acted lately")
		}
	}
}

// Keep renews the lease until ctx ends, and returns ErrLost if this sidecar may no longer act, or if it could
// not renew the lease until another may act. alive reports whether the sidecar's loop runs; while it does
// not, the lease is not renewed.
func (k *Keeper) Keep(ctx context.Context, alive func(context.Context) bool) error {
	k.alive = alive
	lapsed := false
	for k.round(ctx) == nil {
		now := fence.Now()
		switch until := k.machine.Until(); {
		case k.machine.Phase() != lease.Holding:
			return fmt.Errorf("%w: %s; started again, this sidecar waits", ErrLost, k.machine.Lost())
		case now > until+k.terms.Take:
			return fmt.Errorf("%w: it could not be renewed for %v; started again, this sidecar waits", ErrLost, (now - until + k.terms.Hold).Round(time.Second))
		case now > until && !lapsed:
			k.log.Warn("the lease could not be renewed: this sidecar changes nothing in Slurm until it is")
			lapsed = true
		case now <= until && lapsed:
			k.log.Info("the lease is renewed: this sidecar acts again")
			lapsed = false
		}
	}
	return nil
}

// round runs commands until a read has shown the claims, and waits before it.
func (k *Keeper) round(ctx context.Context) error {
	for {
		a, at := k.machine.Next()
		if wait := at - fence.Now(); wait > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
		}
		sent := fence.Now()
		claims, err := k.run(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		k.warn(a, err)
		k.mu.Lock()
		k.machine.Done(a, sent, fence.Now(), claims, err != nil)
		k.until = k.machine.Until()
		k.mu.Unlock()
		if a.Kind == lease.Read {
			return nil
		}
	}
}

// run carries a command out.
func (k *Keeper) run(ctx context.Context, a lease.Action) ([]lease.Claim, error) {
	start, end := claims.Span(k.self, a.Beat)
	switch a.Kind {
	case lease.Create:
		nodes, _, err := k.slurm.Nodes(ctx)
		if err != nil || len(nodes) == 0 {
			return nil, errors.Join(err, errors.New("no node for the lease"))
		}
		fenced := &slurmctl.Client{Dir: k.slurm.Dir, Env: k.slurm.Env, Timeout: k.slurm.Timeout, Ran: k.slurm.Ran,
			Fence: func(argv []string) ([]string, error) { return fence.Command(a.Before, argv...), nil }}
		return nil, fenced.CreateReservation(ctx, slurmctl.ReservationRequest{Name: claims.Name(a.Epoch), Start: start, End: end,
			Nodes: []string{nodes[0].Name}, Users: []string{slurmctl.Nobody}, Flags: []string{"OVERLAP", "IGNORE_JOBS"}})
	case lease.Renew:
		if k.alive != nil {
			in, done := context.WithTimeout(ctx, k.terms.Hold)
			defer done()
			if !k.alive(in) {
				return nil, errors.New("the sidecar's loop does not answer")
			}
		}
		return nil, k.slurm.UpdateReservation(ctx, claims.Name(a.Epoch), slurmctl.ReservationUpdate{End: end})
	case lease.Delete:
		return nil, k.slurm.DeleteReservation(ctx, claims.Name(a.Epoch))
	}
	all, err := k.slurm.Reservations(ctx)
	return claims.Claims(all), err
}

// warn logs a failure, unless it is the same as before.
func (k *Keeper) warn(a lease.Action, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	} else if a.Kind != lease.Read {
		return
	}
	if text != k.told && text != "" {
		k.log.WithError(err).Warn("the lease: a command failed")
	}
	k.told = text
}

// Others returns why a sidecar without a lease must not start: one with a lease may act on the same Slurm.
func Others(ctx context.Context, slurm *slurmctl.Client) error {
	ctx, done := context.WithTimeout(ctx, othersLimit)
	defer done()
	all, err := slurm.Reservations(ctx)
	if top := claims.Top(all); err == nil && top.Epoch > 0 { // if Slurm is away, the sidecar waits for it
		name := claims.Name(top.Epoch)
		return fmt.Errorf("%w: the reservation %s says that sidecars on two hosts share this Slurm: set takeover and api here as there; "+
			"or, if no other sidecar runs any more: scontrol delete ReservationName=%s", store.ErrUnfit, name, name)
	}
	return nil
}

// Fence returns the command that runs another one only while this sidecar may act.
func (k *Keeper) Fence(argv []string) ([]string, error) {
	until, err := k.right()
	if err != nil {
		return nil, err
	}
	return fence.Command(until, argv...), nil
}

func (k *Keeper) right() (time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if fence.Now() >= k.until {
		return 0, errors.New("this sidecar has no lease at present: another may act")
	}
	return k.until, nil
}

// Acts returns why this sidecar may not act, or nil.
func (k *Keeper) Acts() error {
	_, err := k.right()
	return err
}

// Since returns the reservation's name, and since when this sidecar has it.
func (k *Keeper) Since() (name string, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return claims.Name(k.machine.Epoch()), k.since
}

// GiveUp lets another sidecar take over at once. Call it after Keep, once no command is under way.
func (k *Keeper) GiveUp(ctx context.Context) {
	if k.machine.Phase() < lease.Proving {
		return
	}
	k.mu.Lock()
	a := k.machine.GiveUp()
	k.until = 0
	k.mu.Unlock()
	if _, err := k.run(ctx, a); err != nil {
		k.log.WithError(err).Warn("the lease could not be given up: another sidecar takes over later")
	}
}
