package api

import (
	"context"
	"net/http"
	"time"
)

// Power shows which idle nodes are off by plan, or would be, and what that saves.
type Power struct {
	Mode      string         `json:"mode"`               // off, advise, or act
	Why       string         `json:"why,omitempty"`      // why no node goes off by plan at present
	Watts     Watts          `json:"watts"`              // what a node draws
	Boot      float64        `json:"boot_seconds"`       // that a node may take to come up
	Shutdown  float64        `json:"shutdown_seconds"`   // that a node may take to go off
	BreakEven float64        `json:"break_even_seconds"` // that a node must be off to save power, beyond these
	States    PowerStates    `json:"states"`             // of all nodes, as Slurm shows them
	Reserve   []PowerReserve `json:"reserve"`            // nodes that stay awake without a planned use, by partition
	Nodes     int            `json:"nodes"`              // off by plan, or that could be
	Saves     float64        `json:"saves_watts"`        // by these nodes now
	Naps      []PowerNap     `json:"naps"`               // these nodes, by their next planned use
	KWh       float64        `json:"saved_kwh"`          // since then, or that would have been saved
	Boots     int            `json:"boots"`              // of nodes that were off by plan, or would have been
	Since     time.Time      `json:"since,omitzero"`     // of these figures
}

// PowerSummary holds the part of [Power] in a status.
type PowerSummary struct {
	Mode  string  `json:"mode"`        // advise or act
	Nodes int     `json:"nodes"`       // off by plan, or that could be
	Saves float64 `json:"saves_watts"` // by these nodes now
	KWh   float64 `json:"saved_kwh"`   // so far, or that would have been saved
	Boots int     `json:"boots"`       // of nodes that were off by plan, or would have been
}

// Watts holds how much a node draws in each state.
type Watts struct {
	Busy    float64 `json:"busy"`
	Idle    float64 `json:"idle"`
	Off     float64 `json:"off"`
	Booting float64 `json:"booting"`
}

// PowerStates counts nodes by what they do.
type PowerStates struct {
	Busy     int `json:"busy"`
	Idle     int `json:"idle"`
	Booting  int `json:"booting"`
	Off      int `json:"off"`      // or going off
	Unusable int `json:"unusable"` // down or drained
}

// PowerReserve says how many nodes of a partition stay awake without a planned use.
type PowerReserve struct {
	Partition string `json:"partition"`
	Nodes     int    `json:"nodes"`
}

// PowerNap shows nodes that are off until the same planned use.
type PowerNap struct {
	Nodes    int       `json:"nodes"`
	NodeList string    `json:"node_list"`
	Since    time.Time `json:"since"`          // of the first of them
	Until    time.Time `json:"until,omitzero"` // their next planned use; none if there is none
}

// power answers operators: users learn nothing of nodes that Slurm hides from them.
func (d *desk) power(ctx context.Context, r request) (any, error) {
	if !d.rights.trusted(r.caller) {
		return nil, Errorf(ErrForbidden, "the nodes' power is for operators (see operators in the configuration)")
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	return d.backend.Power(ctx)
}

// Power returns which idle nodes are off by plan, or would be. For operators.
func (c *Client) Power(ctx context.Context) (Power, error) {
	return callOnce[Power](ctx, c, http.MethodGet, "/v1/power", nil)
}
