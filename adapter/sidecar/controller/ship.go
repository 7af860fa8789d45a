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

const (
	shareLimit   = 5 * time.Second // for the other sidecar to fetch a setting
	shareLook    = 20 * time.Millisecond
	followsUntil = 10 * time.Second // after its last call, the other sidecar counts as away
)

// ships holds what the sidecar on another host gets.
type ships struct {
	lease func() (name string, since time.Time) // nil: there is no other

	copying sync.Mutex // held while the database is copied or read
	copy    *os.File
	number  int64 // of the copy: when it was begun
	size    int64

	mu      sync.Mutex // never held for long: the status waits for it
	standby *api.Standby
	has     string // sum of the settings that it has
}

// Shared says that there is a sidecar on another host, and that this one acts by a lease.
func (c *Controller) Shared(lease func() (name string, since time.Time)) { c.ships.lease = lease }

// Alive reports whether the loop runs.
func (c *Controller) Alive(ctx context.Context) bool { return c.onLoop(ctx, func() {}) }

// allSettings returns all settings as they are shipped, and their sum.
func (c *Controller) allSettings(ctx context.Context) (text []byte, sum string, err error) {
	all, err := c.store.Settings(ctx)
	if err == nil {
		text, err = json.Marshal(all)
	}
	return text, api.SettingsSum(text), err
}

// Ship implements api.Server.Ship. A credential over TCP names the cluster; on a socket, the request alone does.
func (c *Controller) Ship(ctx context.Context, r api.ShipRequest) (s api.Shipment, err error) {
	if r.Cluster != "" {
		if err := c.drives(r.Cluster, r.Host); err != nil {
			return s, err
		}
	}
	if s.Settings, _, err = c.allSettings(ctx); err != nil {
		return s, err
	}
	c.called(r, false)
	if r.Copy < 0 {
		return s, nil
	}
	c.ships.copying.Lock()
	defer c.ships.copying.Unlock()
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
		c.called(r, true)
	}
	return s, nil
}

// drives returns an error unless this sidecar drives that cluster, which the one on another host is for.
func (c *Controller) drives(cluster, host string) error {
	switch own := c.ClusterName(); own {
	case cluster:
		return nil
	case "":
		return api.Errorf(api.ErrUnavailable, "the sidecar has not asked Slurm yet which cluster this is")
	default:
		return api.Errorf(api.ErrConflict, "this sidecar drives cluster %s, and the one on %s is for cluster %s: correct api there", own, host, cluster)
	}
}

// called notes that the other sidecar has called, and whether it now has the whole database.
func (c *Controller) called(r api.ShipRequest, whole bool) {
	c.ships.mu.Lock()
	defer c.ships.mu.Unlock()
	now := api.Standby{Host: r.Host, Version: r.Version, Seen: time.Now()}
	if before := c.ships.standby; before != nil && before.Host == r.Host {
		now.Copied = before.Copied
	}
	if whole {
		now.Copied = now.Seen
	}
	c.ships.standby, c.ships.has = &now, r.Settings
}

// share waits until the other sidecar has the settings, too, unless it is away: a setting that was confirmed must
// outlive this host.
func (c *Controller) share(ctx context.Context) {
	for end := time.Now().Add(shareLimit); c.ships.lease != nil && time.Now().Before(end); {
		_, sum, err := c.allSettings(ctx)
		c.ships.mu.Lock()
		done := c.ships.standby == nil || time.Since(c.ships.standby.Seen) > followsUntil || c.ships.has == sum
		c.ships.mu.Unlock()
		if done || err != nil {
			return
		}
		time.Sleep(shareLook)
	}
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
