// Package row holds the rows of the sidecar's database as plain values: what the decision core
// keeps about its jobs. It does not know the database itself (package store), which also uses these
// names.
package row

import (
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/planner/malleable"
)

// State is the phase of an evolving job's life.
type State string

// The states of a job.
const (
	Queued   State = "queued"   // parked in Slurm
	Starting State = "starting" // let go, not running yet
	Running  State = "running"  // in a step
	Waiting  State = "waiting"  // a step has ended, and the next one's nodes are still to come
	Ended    State = "ended"
)

// Job is an evolving job. The zero time is "not yet" or "none".
type Job struct {
	Owned
	Terms
	Usage
	Aimed
	Life
	Setbacks
}

// Owned says which job it is, and whose.
type Owned struct {
	ID        int64 // our ID; 0 before it is added
	SlurmID   uint32
	Array     uint32 // of a task of an array: the array's job; 0: it is no task
	Task      uint32 // its number there
	Submitted time.Time
	Name      string
	User      string
	UID, GID  uint32
	Account   string
	QOS       string
	Partition string
}

// Terms holds what the job asks for, as it was changed last.
type Terms struct {
	Profile     planner.Profile
	Moldable    *Moldable  // nil: it has one profile
	Malleable   *Malleable // nil if its size is the profile's
	ExpandLimit planner.ExpandLimit
	Drive       string
	Begin       time.Time
	Claim       int    // nodes that it may have at once; 0: none
	Reservation string // of the site, in which the job runs; "": none
	Prefer      string // features that its nodes should have; "": none

	Behind  time.Time // when its request grew: it then queues behind what was submitted before
	Changes []Change  // the last ones of the request, oldest first
	Offers  []Offer   // to a malleable job, the last ones, oldest first
	Growing *Growing  // a growth on demand under way; nil: none. It is never changed, only replaced

	Progress *malleable.Progress // as the application has reported it; nil: never. It is never changed: another one takes its place
}

// BestEffort reports whether not even the smallest size of a job is planned and promised.
func (t *Terms) BestEffort() bool { return t.Malleable != nil && t.Malleable.BestEffort != "" }

// Usage holds how the job uses its nodes in its steps. No plan depends on it.
type Usage struct {
	Components  []Component // of coupled codes; nil: none. It is never changed, only replaced
	Frequencies []string    // of the CPUs, by step; "": none. nil: no step has one
}

// Aimed holds what the job wants of its own placement, and how long it has waited for that.
type Aimed struct {
	Aim      planner.Aim
	AimSince int64 // since when it could have started without its aim, in Unix seconds; 0: not yet
	AimStart int64 // the start that it waits for then; 0: none
}

// Life holds how far the job is.
type Life struct {
	State       State
	Step        int // 1-based; 0 before the start
	Guess       int // the lowest step that it may be in, if it was found running and its application has not named its step yet; 0: the step is known
	Started     time.Time
	Begun       int64 // when Slurm says that it started the job, in Unix seconds by Slurm's clock then; 0: unknown, or before the start
	StepStarted time.Time
	StepEnded   time.Time // when the application ended the present step
	Ended       time.Time
	EndState    string // Slurm's state at the end
	BatchHost   string
	Suspended   time.Duration // how long Slurm has suspended it, already included in StepStarted

	HeldIdle int64 // node-seconds that its holds kept idle from jobs that waited
}

// Setbacks holds what the job lost by failures, to report it to the application. No plan depends on it.
type Setbacks struct {
	Restarts int    // how often Slurm put the job, or a link of its chain, back into the queue
	Losses   []Loss // of the current step and the one before. It is never changed, only replaced
}

// Loss holds the nodes that a job lost in one step because a node failed.
type Loss struct {
	Step  int // 1-based
	Nodes []string
}

// Offer is nodes that a malleable job was offered or asked for, and its answer. Times are Unix
// seconds; 0 for not yet.
type Offer struct {
	ID        int64    `json:"id"`   // ascending
	Kind      string   `json:"kind"` // grow or shrink
	Mandatory bool     `json:"mandatory,omitempty"`
	Nodes     int      `json:"nodes"`
	Had       int      `json:"had"`  // the job's nodes at that time
	List      []string `json:"list"` // the offered nodes; for a shrink, the nodes that can go: the first Nodes of them are wanted
	Why       string   `json:"why,omitempty"`
	Made      int64    `json:"made"`
	Deadline  int64    `json:"deadline"`
	Until     int64    `json:"until,omitempty"` // by when the offered nodes leave by the plan; 0: no other job is planned on them

	State    string `json:"state"` // open, accepted (being carried out), done, declined, withdrawn, unanswered or failed
	Accepted int    `json:"accepted,omitempty"`
	Answered int64  `json:"answered,omitempty"`
	Back     int64  `json:"back,omitempty"`     // by when the job promised to give the nodes back; 0: it did not
	Warned   bool   `json:"warned,omitempty"`   // the job was signalled
	Enforced bool   `json:"enforced,omitempty"` // the nodes were taken at the deadline
	Closed   int64  `json:"closed,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Change is a change of a job's request that was made: one that is asked for again is not
// made twice.
type Change struct {
	ID   string
	Step int  // that it ended; 0: none
	Open bool // whether Slurm has it is not known yet
}

// Growing holds what is undone if a growth on demand fails.
type Growing struct {
	Profile   planner.Profile `json:"profile"`             // of the job before the growth
	Max       []int           `json:"max,omitempty"`       // then of a malleable job: most nodes of each step
	Postpones []Postponed     `json:"postpones,omitempty"` // waiting jobs that start later because of the growth
}

// Postponed holds the delay of a waiting job by a growth, and how many nodes the job asks for.
type Postponed struct {
	Job     uint32 `json:"job"` // of Slurm
	Seconds int64  `json:"seconds"`
	Nodes   int    `json:"nodes"`
	Would   int64  `json:"would"` // Unix second at which the job would start without the growth
}

// Moldable holds the alternatives of a job. It is never changed, only replaced.
type Moldable struct {
	Alternatives []planner.Profile
	By           planner.Preference
	Minutes      [][]int64 // see request.Moldable
	Choice       int       // from 0: the job's Profile is this one
	Fixed        bool      // it has started
}

// Component is one of a job's coupled codes, with a part of its nodes.
type Component struct {
	Name  string   `json:"name"`
	Sizes []int    `json:"sizes"`           // its nodes in each step of the job's profile
	Nodes []string `json:"nodes,omitempty"` // that it has now, or had last
}

// Malleable holds a malleable job's bounds, as in request.Malleable. It is never changed, only
// replaced.
type Malleable struct {
	Max     []int // most nodes of each step of the profile
	Sizes   malleable.Sizes
	Grace   int    // seconds; 0: the site's default
	Speedup string // as declared; "": not

	// BestEffort says what becomes of a best-effort job once its last nodes are wanted: Requeued or Cancelled. "": its smallest
	// size is planned and promised.
	BestEffort string
}

// What becomes of a best-effort job once its last nodes are wanted.
const (
	Requeued  = "requeue" // it waits again
	Cancelled = "cancel"
)

// Span is nodes allocated, or planned to be, for a stretch of time.
type Span struct {
	Step     int // 1-based
	Start    time.Time
	End      time.Time // zero: still going on
	Nodes    int
	NodeList string // compressed
}

// Part is a Slurm job of an evolving job besides its base job: a companion, or the job of a chain's
// step.
type Part struct {
	SlurmID  uint32
	Step     int // 1-based: that it came with, or that it runs
	NodeList string
}

// Intent is a change asked of Slurm that is not known to be settled.
type Intent struct {
	ID     int64
	Job    int64 // 0: of none
	Action string
	Detail string
	At     time.Time
}

// Known holds what is remembered about every job in the database, including ended ones.
type Known struct {
	ID        int64
	SlurmID   uint32
	UID       uint32
	Submitted time.Time
	Steps     int
}
