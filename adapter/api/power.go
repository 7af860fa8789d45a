package api

import (
	"context"
	"net/http"
	"strings"
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
	Today     []int  `json:"today,omitempty"` // in each hour of the present day, in UTC
}

// PowerHistory shows what was learnt of jobs that nobody planned, and how many nodes stay awake for them.
type PowerHistory struct {
	Mode       string      `json:"mode"`             // off, advise, or act
	Why        string      `json:"why,omitempty"`    // why nothing is learnt at present
	Boot       float64     `json:"boot_seconds"`     // length of the periods in which arrivals are counted
	MaxWait    float64     `json:"max_wait_seconds"` // power.max_wait
	Reserve    int         `json:"reserve"`          // power.reserve, by partition
	Ahead      float64     `json:"ahead_seconds"`    // how long before an hour its reserve counts
	LeastWeeks int         `json:"least_weeks"`      // in which an hour must have been watched; until then, a part of the partition stays awake
	Hour       int         `json:"hour"`             // the present one of the week, in UTC, from Monday 0:00
	Partitions []PowerWeek `json:"partitions"`       // those with arrivals, or watched for an hour
}

// PowerWeek shows what was learnt of a partition.
type PowerWeek struct {
	Partition string      `json:"partition"`
	Nodes     int         `json:"nodes"`
	Hours     []PowerHour `json:"hours"` // the 168 hours of the week, in UTC, from Monday 0:00
}

// PowerHour shows what was learnt of an hour of the week.
type PowerHour struct {
	Weeks   int `json:"weeks"`   // in which it was watched
	Periods int `json:"periods"` // with arrivals, the last ones
	Most    int `json:"most"`    // nodes that jobs took in one of them
	Reserve int `json:"reserve"` // nodes that stay awake
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
	if strings.HasSuffix(r.URL.Path, "/history") {
		return d.backend.PowerHistory(ctx)
	}
	return d.backend.Power(ctx)
}

// PowerHistory returns what was learnt of jobs that nobody planned. For operators.
func (c *Client) PowerHistory(ctx context.Context) (PowerHistory, error) {
	return callOnce[PowerHistory](ctx, c, http.MethodGet, "/v1/power/history", nil)
}

// Power returns which idle nodes are off by plan, or would be. For operators.
func (c *Client) Power(ctx context.Context) (Power, error) {
	return callOnce[Power](ctx, c, http.MethodGet, "/v1/power", nil)
}
