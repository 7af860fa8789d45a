package controller

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
)

// copyAgain is how long a copy of the database lasts at least. It costs as much as reading the database.
const copyAgain = 10 * time.Second

// ships holds what the sidecar on another host gets.
type ships struct {
	lease func() (name string, since time.Time) // nil: there is no other

	mu      sync.Mutex
	copy    *os.File
	number  int64 // of the copy: when it was begun
	size    int64
	standby *api.Standby
}

// Shared says that there is a sidecar on another host, and that this one acts by a lease.
func (c *Controller) Shared(lease func() (name string, since time.Time)) { c.ships.lease = lease }

// Alive reports whether the loop runs.
func (c *Controller) Alive(ctx context.Context) bool { return c.onLoop(ctx, func() {}) }

// Ship implements api.Server.Ship.
func (c *Controller) Ship(ctx context.Context, r api.ShipRequest) (s api.Shipment, err error) {
	all, err := c.store.Settings(ctx)
	if err == nil {
		s.Settings, err = json.Marshal(all)
	}
	c.ships.mu.Lock()
	defer c.ships.mu.Unlock()
	if err != nil {
		return s, err
	}
	before := c.ships.standby
	c.ships.standby = &api.Standby{Host: r.Host, Version: r.Version, Seen: time.Now()}
	if before != nil && before.Host == r.Host {
		c.ships.standby.Copied = before.Copied
	}
	if r.Copy < 0 {
		return s, nil
	}
	if r.Copy == 0 {
		if err := c.copyDatabase(ctx); err != nil {
			return s, err
		}
	} else if r.Copy != c.ships.number {
		return s, api.Errorf(api.ErrConflict, "this copy of the database is gone: begin again")
	}
	s.Copy, s.Size = c.ships.number, c.ships.size
	s.Piece = make([]byte, max(0, min(api.MostShipped, s.Size-max(0, r.Offset))))
	if n, err := c.ships.copy.ReadAt(s.Piece, max(0, r.Offset)); err != nil && !(err == io.EOF && n == len(s.Piece)) {
		return s, err
	}
	if r.Offset+int64(len(s.Piece)) == s.Size {
		c.ships.standby.Copied = time.Now()
	}
	return s, nil
}

// copyDatabase makes a new copy, unless the last one is young.
func (c *Controller) copyDatabase(ctx context.Context) error {
	now := time.Now()
	if c.ships.copy != nil {
		if now.Sub(time.Unix(0, c.ships.number)).Abs() < copyAgain {
			return nil
		}
		c.ships.copy.Close()
		c.ships.copy = nil
	}
	path := c.cfg.Database + ".copy"
	if err := c.store.CopyTo(ctx, path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	c.ships.copy, c.ships.number, c.ships.size = f, now.UnixNano(), info.Size()
	return os.Remove(path) // it lasts as long as it is open
}

// leaseNow returns what the status says about the lease.
func (c *Controller) leaseNow() *api.Lease {
	if c.ships.lease == nil {
		return nil
	}
	l := &api.Lease{Host: c.host}
	l.Name, l.Since = c.ships.lease()
	c.ships.mu.Lock()
	defer c.ships.mu.Unlock()
	if c.ships.standby != nil {
		standby := *c.ships.standby
		l.Standby = &standby
	}
	return l
}
