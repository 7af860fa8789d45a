package api

import (
	"context"
	"net/http"
	"time"
)

// PlacementQuery asks where a job would run if it were submitted now. The answer binds for some seconds: the place is kept
// from evolving jobs that are submitted later, until the job comes or the time is over.
type PlacementQuery struct {
	ID      string `json:"id"`      // of the question; a repeated one waits for the same answer
	Request string `json:"request"` // what the job asks for, as the marker in its comment says it
	Name    string `json:"name,omitempty"`

	// As sbatch has them; "": the cluster's defaults.
	Partition   string `json:"partition,omitempty"`
	Account     string `json:"account,omitempty"`
	QOS         string `json:"qos,omitempty"`
	Constraint  string `json:"constraint,omitempty"`
	Exclude     string `json:"exclude,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	GRES        string `json:"gres,omitempty"` // of each node
	Licenses    string `json:"licenses,omitempty"`

	CPUs    int   `json:"cpus,omitempty"`    // of each node
	Memory  int64 `json:"memory,omitempty"`  // of each node, MiB
	Minutes int64 `json:"minutes,omitempty"` // time limit

	Withdraw bool `json:"withdraw,omitempty"` // the place is not wanted any more
}

// Placement is the answer. With Unfit, the cluster can never run the job.
type Placement struct {
	Ready   bool   `json:"ready"` // false: the wait was cut short, ask again
	Cluster string `json:"cluster"`
	// Partition is the one that was planned in: of the query, or the default one.
	Partition string    `json:"partition,omitempty"`
	Start     time.Time `json:"start,omitzero"`
	End       time.Time `json:"end,omitzero"`
	Now       time.Time `json:"now,omitzero"`    // when that was planned, by the same clock
	Waits     string    `json:"waits,omitempty"` // for what, if it does not start at once
	Unfit     string    `json:"unfit,omitempty"`
	Nodes     int       `json:"nodes"`          // that suit the job
	Free      int       `json:"free"`           // of these, idle now
	Until     time.Time `json:"until,omitzero"` // until when the place is kept

	Most int `json:"-"` // nodes of the job's largest step
}

// place answers where the caller's job would run. The wait counts as one of the caller's requests.
func (d *desk) place(ctx context.Context, r request) (any, error) {
	if !r.caller.known {
		return nil, Errorf(ErrDenied, "this needs a MUNGE credential")
	}
	var q PlacementQuery
	if err := readOne(r, &q); err != nil {
		return nil, err
	}
	sight := d.rights.sight(ctx, r.caller)
	if hidden := sight.hide(&q); hidden != "" {
		return Placement{Ready: true, Unfit: hidden}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	defer context.AfterFunc(d.ending, cancel)()
	a, err := d.backend.Place(ctx, q)
	a = sight.placement(a)
	with := d.rights.discretion(context.WithoutCancel(ctx), r.caller)
	if with != nil {
		a.Waits, a.Unfit = with(a.Waits), with(a.Unfit)
	}
	return a, discreetError(err, with)
}

// Place asks where a job would run if it were submitted now, and waits for the answer until ctx ends.
func (c *Client) Place(ctx context.Context, q PlacementQuery) (Placement, error) {
	for pause := newPause(); ; {
		a, err := callOnce[Placement](ctx, c, http.MethodPost, "/v1/places", q)
		if err != nil || a.Ready {
			return a, err
		}
		if err := pause.sleep(ctx, 2*longestPause); err != nil {
			return a, err
		}
	}
}
