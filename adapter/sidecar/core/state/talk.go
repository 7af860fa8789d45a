package state

import (
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/planner"
)

// Changing holds a change of a job's request until Slurm has it. Owner: talk.
type Changing struct {
	Unwritten bool        // its request was changed and not written into Slurm yet
	Undo      *Restorable // the request before the change, in case Slurm refuses it; nil: no call waits for it
	Reached   int         // the step in which the request was changed, by its marker; 0: not known
	Release   []string    // nodes that the application would free at the next shrink
}

// Shown holds what users see of a job. Owner: view.
type Shown struct {
	Display display `codec:"-"` // its profile and plan for display
	Asking  Told    // events that its user caused by requests
	Trouble Told    // and by jobs that Slurm does not start, or that keep their nodes
	Tries   Told    // and by actions on it that failed
	Delays  Told    // and by late growths: the last one is written before its step begins
}

// tries holds the attempts of users.
type tries struct {
	Underway uint64               // the call being tried; 0 if none
	Cycle    uint64               // number of the current cycle
	Last     uint64               // number of the last attempt
	Of       map[uint32]Attempted // users that had an attempt
	Changed  uint64               // how many plans have changed so far
}

// Attempted identifies the last attempt of a user.
type Attempted struct{ Number, Cycle uint64 }

// Result returns a call's target with the result of its attempt.
func (k *OpenCall) Result() TriedTarget {
	r := TriedTarget{Target: k.Target, Refused: k.Tried.Refused, Earliest: k.Tried.Earliest}
	r.GoesBehind, r.Later, r.Plan = k.Tried.Behind, k.Tried.Later, nil
	if r.Grown > 0 {
		r.Profile = slices.Clone(r.Profile)
		r.Profile[r.Grown].Nodes = k.Tried.Nodes
	}
	for _, step := range k.Tried.Plan {
		r.Plan = append(r.Plan, msg.PlannedStep{Start: step.Start, End: step.End, Nodes: step.Nodes, At: step.At})
	}
	return r
}

// Forget deletes a call's attempt.
func (k *OpenCall) Forget() { k.Tried, k.Basis, k.Target = nil, nil, nil }

// OpenCall holds a client's waiting call.
type OpenCall struct {
	msg.Call
	Of    *Job // the job that the call waits for; nil if the call has not been evaluated yet
	Since int  // growths given up before the call began to wait
	Again bool // a new answer may be possible

	At      time.Time // when the call arrived
	Refused error     // why the change is taken back after it had begun

	// for a change, see change/attempt.go
	Target   *Target    // the change being tried
	Basis    *Basis     // what the result of the attempt depends on
	Tried    *msg.Tried // the result; nil if not known yet
	Attempts int
}

// Basis holds what tells whether anything that an attempt depends on has changed since it began.
type Basis struct {
	Cycle, Changed uint64 // of Tries
	State          row.State
	Step, Changes  int
	Touched        time.Time
	Nodes          []string
}

// Target describes a job as it would be after a change.
type Target struct {
	*Job              // a copy
	Words      string // the request in words
	Ends       bool   // the current step ends now
	Wait       int64
	Fewest     int             // smallest number of nodes, for a growth that may be smaller than requested
	GoesBehind bool            // the job goes behind all other waiting jobs
	Grown      int             // position of the step to which the job grows; 0 if it does not grow
	Most       []int           // maximum nodes of the last steps, if they are malleable
	Later      []row.Postponed // waiting jobs that start later because of the growth
}

// Restorable holds the state of a job before a change, in case Slurm refuses the change.
type Restorable struct {
	Job         row.Job
	Reached     int
	Release     []string
	Kept        *KeptBack
	Overdue     int64
	NeedsReplan bool
	Plan        []msg.PlannedStep

	ID, Words string // of the change
}

// TriedTarget holds the result that a change would have.
type TriedTarget struct {
	*Target         // with the plan; for a refused change, how it would be possible, if at all
	Refused  string // what prevents it; "": nothing
	Earliest int64  // Unix second at which the next step could begin; 0: never, as things are
}

// display caches what is shown of a job's profile and plan, with the values that it was made from: every step
// makes views, and few plans change.
type display struct {
	Profile planner.Profile
	Text    string
	CPUFreq string // the profile with CPU frequencies; "": no step has one
	Plan    []msg.PlannedStep
	Sizes   planner.Profile
	Spans   []api.Span
}
