package api

import (
	"context"
	"net/http"
	"time"
)

// Cluster holds what exists besides evolving jobs, as of the last poll of Slurm.
type Cluster struct {
	Taken        time.Time     `json:"taken"` // when Slurm was polled
	Nodes        []Node        `json:"nodes"` // in Slurm's order of names
	Others       []OtherJob    `json:"others"`
	More         int           `json:"more,omitempty"` // further ones, which are too many
	Reservations []Reservation `json:"reservations"`
}

// Node is a compute node.
type Node struct {
	Name       string   `json:"name"`
	State      string   `json:"state"` // Slurm's
	Usable     bool     `json:"usable"`
	Partitions []string `json:"partitions"`
}

// OtherJob is a stock job that has nodes. For a caller who may not read it, it has no owner, starts
// at the poll, and has no known end.
type OtherJob struct {
	ID        uint32    `json:"id,omitempty"`
	Name      string    `json:"name,omitempty"`
	User      string    `json:"user,omitempty"`
	UID       uint32    `json:"uid,omitempty"`
	Account   string    `json:"account,omitempty"`
	Partition string    `json:"partition,omitempty"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end,omitzero"` // by its time limit; zero: none is known
	NodeList  string    `json:"node_list"`
}

// Reservation is one of Slurm's: a hold, or the site's own.
type Reservation struct {
	Name     string    `json:"name"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	NodeList string    `json:"node_list"`
	Hold     bool      `json:"hold"`
	Job      uint32    `json:"job,omitempty"` // base job that a hold is for
	Step     int       `json:"step,omitempty"`
	UID      uint32    `json:"uid,omitempty"` // of that job
	Users    []string  `json:"-"`             // who may use it
	Accounts []string  `json:"-"`             // whose users may
}

// cluster returns what the caller may read: of other users' jobs and holds by the rules for jobs,
// of nodes and reservations what Slurm shows the caller.
func (s *Server) cluster(ctx context.Context, r request) (any, error) {
	if err := s.mayAsk(r.caller); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, backendTimeout)
	defer cancel()
	whole, err := s.Backend.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	all, sight := s.seesAll(ctx, r.caller), s.sight(ctx, r.caller)
	if all && sight == nil {
		return *whole, nil
	}
	own, sees := *whole, s.seer(ctx, r.caller)
	own.Nodes, own.Others, own.Reservations = sight.nodes(whole.Nodes), make([]OtherJob, len(whole.Others)), []Reservation{}
	for i, j := range whole.Others {
		if !all && j.UID != r.caller.uid && !(j.Account != "" && sees(j.Account)) {
			j = OtherJob{Start: whole.Taken, NodeList: j.NodeList}
		}
		own.Others[i] = j
	}
	for _, v := range whole.Reservations {
		if (all || !v.Hold || v.UID == r.caller.uid) && sight.shows(v) {
			own.Reservations = append(own.Reservations, v)
		}
	}
	return own, nil
}

// Cluster returns what exists besides evolving jobs.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	var a Cluster
	return a, c.call(ctx, http.MethodGet, "/v1/cluster", nil, &a)
}
