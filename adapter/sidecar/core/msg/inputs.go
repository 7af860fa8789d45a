package msg

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Input is an event that the core processes.
type Input interface{ input() }

// Tick reports that the time of [Wake] has come.
type Tick struct{}

// Observation holds the result of a poll of Slurm that [Poll] asked for, or why the poll failed.
type Observation struct {
	Begun        time.Time         // before the first command: nothing in it is older
	Config       *slurmctl.Config  // if the poll asked for it as well
	Topology     slurmctl.Topology // read with Config
	NoTopology   error             // why Topology could not be read
	Nodes        []slurmctl.Node   // in any order
	Partitions   []slurmctl.Partition
	Reservations []slurmctl.Reservation // read before the jobs: a job outside of a reservation entered it before the reservation existed
	Jobs         []slurmctl.Job
	Marks        []Mark        `codec:"-"` // markers in the jobs' comments, from [ReadMarks]; nil: the core reads them
	Lead         time.Duration // of slurmctld's clock over this host's; 0 if both agree
	Err          error

	Calls              uint64        // number of Slurm commands so far
	Commands           int           // number of commands in this poll
	CPU                time.Duration // processor time of these commands
	BareCPU            time.Duration // processor time of a command that asks for next to nothing; 0: not measured
	UpdatesNeedAccount bool          // see mode.Facts
}

// Resized holds the answer of a malleability policy ([Resize]), by the jobs of the question. If it has a
// fault, the built-in policy answers instead.
type Resized struct {
	Changes []malleable.Change
	Fault   string
}

// NodesSeen holds a poll of the nodes only, which [PollNodes] asked for.
type NodesSeen struct {
	Begun time.Time
	Nodes []slurmctl.Node
	Err   error
}

// Outcome holds the outcome of a [Task]. The command's comment names the type of the result. If Err is not
// nil, there may still be a result, for what the command did before it failed.
type Outcome struct {
	Task               int64
	Err                error
	Result             any
	UpdatesNeedAccount bool // see mode.Facts
}

// Call is a request from a job's script or an administrator. It asks what the job has. It also ends a step if
// Next is set, changes the coming steps if Change is set, waits for an offer if Offer is set, answers an offer
// if Answer is set, reports progress if Progress is set, cancels the job's holds if Cancel is set, or asks where a job would run if Place is set. A
// [Reply] with the same ID answers it.
type Call struct {
	ID     uint64
	UID    uint32 // UID of the caller
	Job    uint32
	Next   *api.NextRequest
	Change *api.ChangeRequest
	Offer  *api.OfferQuery
	Answer *api.AnswerRequest

	Progress *api.ProgressReport
	Cancel   *api.CancelHolds
	Place    *api.PlacementQuery
	User     string    // name of the caller, with Place
	Hands    api.Hands // what the caller can do for the sidecar, and has done
}

// Withdrawal reports that a caller stopped waiting: the core answers with what it has.
type Withdrawal struct{ ID uint64 }

// ClockSet reports that Slurm's clock was set, forward or back, while the clock that times the steps
// went on.
type ClockSet struct{ By time.Duration }

// Stop reports that the sidecar is about to end: the core still accepts outcomes, but begins nothing more.
type Stop struct{}

// Configuration holds a new configuration (nil: unchanged) or strategy.
type Configuration struct {
	Config   *config.Config
	Strategy Strategy
}

func (Tick) input() {}

func (Books) input() {}

func (Observation) input() {}

func (Planned) input() {}

func (Resized) input() {}

func (NodesSeen) input() {}

func (Outcome) input() {}

func (Call) input() {}

func (Withdrawal) input() {}

func (ClockSet) input() {}

func (Stop) input() {}

func (Configuration) input() {}
