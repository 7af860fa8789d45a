package api

import "time"

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
