package core

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Input is something that has happened.
type Input interface{ input() }

// Tick says that the time of [Wake] has come.
type Tick struct{}

// Observation is a poll of Slurm, asked for by [Poll], or why there is none.
type Observation struct {
	Begun        time.Time        // before the first command: nothing in it is older
	Config       *slurmctl.Config // if it was asked for, too
	Nodes        []slurmctl.Node  // in any order
	Partitions   []slurmctl.Partition
	Reservations []slurmctl.Reservation // seen before the jobs: whoever is outside of one entered before it stood
	Jobs         []slurmctl.Job
	Marks        []Mark // of the jobs' comments, by [ReadMarks]; nil: the core reads them
	Err          error

	Calls              uint64        // of Slurm's commands, ever
	Commands           int           // of this poll
	CPU                time.Duration // processor time that they took
	BareCPU            time.Duration // processor time of a command that asks for next to nothing; 0: not measured
	UpdatesNeedAccount bool          // see siteFacts
}

// Resized is what a malleability policy has answered ([Resize]), by the jobs of the question. With a fault
// the default answers in its place.
type Resized struct {
	Changes []malleable.Change
	Fault   string
}

// NodesSeen is a poll of the nodes alone, asked for by [PollNodes].
type NodesSeen struct {
	Begun time.Time
	Nodes []slurmctl.Node
	Err   error
}

// Outcome is what became of a [Task]. The result is of the type that the command's
// comment says; where Err is not nil it may still be there, for what was done before.
type Outcome struct {
	Task               int64
	Err                error
	Result             any
	UpdatesNeedAccount bool // see siteFacts
}

// Call is a job's script (or an administrator) that wants to know what the job has, and
// that ends a step if Next is there, changes what is still to come if Change is, waits for an offer
// if Offer is, answers one if Answer is, reports progress if Progress is, or cancels its holds if Cancel is. It is answered by a [Reply] with its ID.
type Call struct {
	ID     uint64
	UID    uint32 // of the caller
	Job    uint32
	Next   *api.NextRequest
	Change *api.ChangeRequest
	Offer  *api.OfferQuery
	Answer *api.AnswerRequest

	Progress *api.ProgressReport
	Cancel   *api.CancelHolds
}

// Withdrawal says that whoever called waits no longer: he is answered with what there is.
type Withdrawal struct{ ID uint64 }

// ClockSet says that the machine's clock was set, forward or back, while the one by which
// steps are timed went on.
type ClockSet struct{ By time.Duration }

// Stop says that the sidecar is about to end: outcomes are taken over still, but nothing
// more is begun.
type Stop struct{}

// Configuration is another configuration (nil: as before) or strategy.
type Configuration struct {
	Config   *config.Config
	Strategy Strategy
}

func (Tick) input()          {}
func (Books) input()         {}
func (Observation) input()   {}
func (Planned) input()       {}
func (Resized) input()       {}
func (NodesSeen) input()     {}
func (Outcome) input()       {}
func (Call) input()          {}
func (Withdrawal) input()    {}
func (ClockSet) input()      {}
func (Stop) input()          {}
func (Configuration) input() {}
