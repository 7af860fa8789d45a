package api

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Budget shows the limits on holds, and what is in use of them.
type Budget struct {
	Limits    []Setting     `json:"limits"` // max_delay, max_delays, max_holds, and hold_shares
	Holds     int           `json:"holds"`  // in Slurm, of max_holds; for users: their own
	MostHolds int           `json:"most_holds"`
	Use       []BudgetUse   `json:"use"`    // by scope (user, account, partition), name, and partition
	Delays    []BudgetDelay `json:"delays"` // for operators
	// What growths on demand took from waiting jobs (grow_delay); for users, what theirs took and which of their jobs wait longer.
	Growths []BudgetGrowth `json:"growths,omitempty"`
	Moved   []BudgetMoved  `json:"moved,omitempty"`
}

// BudgetGrowth shows how much a user's growths on demand took from waiting jobs.
type BudgetGrowth struct {
	UID             uint32    `json:"uid"`
	User            string    `json:"user"` // the number, if no job of the user is known any more
	NodeSeconds     int64     `json:"node_seconds"`
	MostNodeSeconds int64     `json:"most_node_seconds"`
	Until           time.Time `json:"until"` // when this counts no longer, without further growths
}

// BudgetMoved shows how much later growths on demand make a waiting job.
type BudgetMoved struct {
	Job     uint32  `json:"job"`
	User    string  `json:"user"`
	Seconds float64 `json:"seconds"`
	Most    float64 `json:"most"`
}

// BudgetUse shows what an owner of holds has ahead of time of a partition, and how much it may have.
type BudgetUse struct {
	Scope         string  `json:"scope"` // user, account, or partition
	Name          string  `json:"name"`  // of the user or account
	Partition     string  `json:"partition"`
	Holds         int     `json:"holds"`
	MostHolds     int     `json:"most_holds"`
	Nodes         int     `json:"nodes"` // held for growths at once
	MostNodes     int     `json:"most_nodes"`
	NodeHours     float64 `json:"node_hours"` // held until their jobs have them
	MostNodeHours float64 `json:"most_node_hours"`
}

// BudgetDelay shows how many stock jobs of a partition holds keep from starting now.
type BudgetDelay struct {
	Partition string  `json:"partition"`
	Budget    float64 `json:"budget"`  // seconds; promises give way after it
	Jobs      int     `json:"jobs"`    // held up now
	Longest   float64 `json:"longest"` // seconds since the first of them could have started
}

// budget shows operators everything, and others what is their own.
func (d *desk) budget(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	b, err := d.backend.Budget(ctx)
	if err != nil || d.rights.trusted(r.caller) {
		return b, err
	}
	me, own := userName(r.caller.uid), Budget{Limits: slices.Clone(b.Limits), MostHolds: b.MostHolds, Use: []BudgetUse{}, Delays: []BudgetDelay{}}
	for i := range own.Limits {
		own.Limits[i].By = ""
	}
	for _, u := range b.Use {
		if u.Scope == "user" && u.Name == me {
			own.Use = append(own.Use, u)
			own.Holds += u.Holds
		}
	}
	for _, g := range b.Growths {
		if g.UID == r.caller.uid {
			own.Growths = append(own.Growths, g)
		}
	}
	for _, m := range b.Moved {
		if m.User == me {
			own.Moved = append(own.Moved, m)
		}
	}
	return own, nil
}

// Budget returns the limits on holds, and what is in use of them: for users, their own.
func (c *Client) Budget(ctx context.Context) (Budget, error) {
	return callOnce[Budget](ctx, c, http.MethodGet, "/v1/budget", nil)
}

// Budget returns the limits on holds, and what is in use of them: for users, their own.
func (v Visitor) Budget(ctx context.Context) (Budget, error) {
	return visit[Budget](ctx, v, v.desk.budget, "/v1/budget", nil)
}
