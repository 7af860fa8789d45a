package controller

import (
	"context"
	"maps"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// remembered caches what Slurm said about users' rights; it is read only when a request needs it.
type remembered[T any] struct {
	mu    sync.Mutex
	known T
	read  time.Time
}

// rememberedFor is how long that is believed, and how long Slurm is not asked again after a
// failure.
const rememberedFor = 2 * time.Minute

// of returns what holds now.
func (p *remembered[T]) of(ctx context.Context, long time.Duration, read func(context.Context) (T, error)) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.read.IsZero() && time.Since(p.read) < long {
		return p.known, nil
	}
	known, err := read(ctx)
	p.known, p.read = known, time.Now()
	return known, err
}

// Sees returns a function that reports whether a user reads the jobs of an account, or with "" all
// jobs, because of a role in Slurm, if the rule for reading is Slurm's own.
func (c *Controller) Sees(ctx context.Context, uid uint32) func(account string) bool {
	nothing := func(string) bool { return false }
	if !c.view.Load().AsSlurm {
		return nothing
	}
	who, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return nothing
	}
	known, err := c.privileges.of(ctx, rememberedFor, c.slurm.Privileges)
	if err != nil {
		c.log.WithError(err).Warn("operators and coordinators of accounts are not known: they read their own jobs alone")
	}
	return func(account string) bool { return known.See(who.Username, account) }
}

// coordinates lists the accounts whose jobs a user reads as their coordinator.
func (c *Controller) coordinates(ctx context.Context, uid uint32) []string {
	who, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil || !c.view.Load().AsSlurm {
		return nil
	}
	known, err := c.privileges.of(ctx, rememberedFor, c.slurm.Privileges)
	if err != nil {
		return nil // Sees has said why
	}
	return known.Coordinates(who.Username)
}

// Shows returns what Slurm shows a user who is not an operator of nodes, partitions, and
// reservations, or nil for everything.
func (c *Controller) Shows(ctx context.Context, uid uint32) *api.Sight {
	private := c.view.Load().Private
	visible, err := c.visible.of(ctx, rememberedFor, c.slurm.Visible)
	if err != nil {
		c.log.WithError(err).Warn("which partitions are hidden is not known: users are shown none")
	}
	name, groups := namesOf(uid)
	sees := func(partition string) bool { return !private.Partitions && visible.To(groups, partition) }
	if err == nil && !private.Nodes && !private.Reservations && !slices.ContainsFunc(slices.Collect(maps.Keys(visible)), func(p string) bool { return !sees(p) }) {
		return nil
	}
	return &api.Sight{Nodes: !private.Nodes, Partition: sees, Reservation: func(r api.Reservation) bool {
		return !private.Reservations || r.Hold && r.UID == uid || !r.Hold && mayUse(r, name)
	}}
}

// HidesNodes reports whether Slurm shows nodes only to operators, as last observed.
func (c *Controller) HidesNodes() bool { return c.view.Load().Private.Nodes }

// namesOf returns the names of a user and of the groups that he is in, as far as they are known.
func namesOf(uid uint32) (name string, groups []string) {
	who, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return "", nil
	}
	ids, err := who.GroupIds()
	if err != nil {
		return who.Username, nil
	}
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil {
			groups = append(groups, g.Name)
		}
	}
	return who.Username, groups
}

// mayUse reports whether a reservation is for a user by name, or for all but some. It ignores
// accounts: a reservation for accounts is shown only to operators.
func mayUse(r api.Reservation, name string) bool {
	if name == "" || len(r.Users) == 0 || len(r.Accounts) > 0 {
		return false
	}
	if strings.HasPrefix(r.Users[0], "-") {
		return !slices.Contains(r.Users, "-"+name)
	}
	return slices.Contains(r.Users, name)
}
