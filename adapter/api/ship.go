package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"time"
)

// MostShipped bounds a piece of the database, in bytes.
const MostShipped = 1 << 20

// ShipRequest asks the sidecar that acts for what only its database knows. It comes from a sidecar on another host.
type ShipRequest struct {
	Host     string `json:"host"`
	Cluster  string `json:"cluster"` // of its Slurm; "": that of the sidecar that acts
	Version  string `json:"version"`
	Settings string `json:"settings"` // SettingsSum of those that it has on its disk
	Copy     int64  `json:"copy"`     // number of the copy of the database; 0 makes a new one; negative: settings alone
	Offset   int64  `json:"offset"`   // of the piece, in bytes
}

// SettingsSum returns what tells shipped settings apart.
func SettingsSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Shipment is a piece of a copy of the database, with all settings.
type Shipment struct {
	Copy     int64  `json:"copy"`
	Size     int64  `json:"size"` // of the whole copy
	Piece    []byte `json:"piece"`
	Settings []byte `json:"settings"` // JSON, for the same release
}

// Lease says which of the sidecars on several hosts acts.
type Lease struct {
	Name    string    `json:"name"` // of the reservation in Slurm
	Host    string    `json:"host"` // of the sidecar that acts
	Since   time.Time `json:"since"`
	Standby *Standby  `json:"standby,omitempty"` // nil: none has called
}

// Standby is the sidecar that takes over when the one that acts is gone.
type Standby struct {
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Seen    time.Time `json:"seen"`            // when it last called
	Copied  time.Time `json:"copied,omitzero"` // when it last had the whole database
}

// Ship returns a piece of the database. For sidecars.
func (c *Client) Ship(ctx context.Context, r ShipRequest) (Shipment, error) {
	return callOnce[Shipment](ctx, c, http.MethodPost, "/v1/ship", r)
}

func (d *desk) ships(ctx context.Context, r request) (any, error) {
	if !r.caller.known || r.caller.uid != 0 && int(r.caller.uid) != os.Geteuid() {
		return nil, Errorf(ErrForbidden, "only a sidecar on another host may copy the database")
	}
	var req ShipRequest
	if err := readOne(r, &req); err != nil {
		return nil, err
	}
	if d.ship == nil {
		return nil, Errorf(ErrConflict, "this sidecar has no second one: set takeover in its configuration, too")
	}
	return d.ship(ctx, req)
}

// acting has a handler answer only while this sidecar may act, before and after: one that was stopped meanwhile, or waited, knows
// nothing of what another did to the job. Reads about no single job are answered always, so that people see what was last known.
func (d *desk) acting(one route) handler {
	if d.acts == nil || one.method == http.MethodGet && !strings.HasPrefix(one.path, "/v1/jobs/") {
		return one.answer
	}
	return func(ctx context.Context, r request) (any, error) {
		if err := d.acts(); err != nil {
			return nil, Errorf(ErrUnavailable, "%v", err)
		}
		v, err := one.answer(ctx, r)
		if lost := d.acts(); lost != nil {
			return nil, Errorf(ErrUnavailable, "%v", lost)
		}
		return v, err
	}
}
