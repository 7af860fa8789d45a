package api

import (
	"encoding/json"
	"time"
)

// Job is an evolving job as evosqueue and the dashboard see it.
type Job struct {
	ID          uint32         `json:"id"`                    // Slurm id of the base job (of the first job in a chain)
	Array       uint32         `json:"array,omitempty"`       // of a task: its array
	ArrayTask   uint32         `json:"array_task,omitempty"`  // its number there
	ArrayRest   string         `json:"array_rest,omitempty"`  // tasks that wait in the array's record, e.g. 33-100: the job stands for all of them
	ArrayLimit  int            `json:"array_limit,omitempty"` // how many tasks of its array may run at once; 0: any number
	Name        string         `json:"name"`
	User        string         `json:"user"`
	UID         uint32         `json:"uid"`
	Account     string         `json:"account,omitempty"`
	Partition   string         `json:"partition"`
	State       string         `json:"state"`               // queued, starting, running, waiting (step ended, next one's nodes to come), suspended (by Slurm), ended
	Reason      string         `json:"reason"`              // why it is in this state, in words
	EndState    string         `json:"end_state,omitempty"` // Slurm's state at the end
	Drive       string         `json:"drive"`
	ExpandLimit string         `json:"expand_limit"`
	Claim       int            `json:"claim,omitempty"`    // nodes that it may have at once (--max-nodes); 0: none
	Profile     string         `json:"profile"`            // requested, in the grammar of --profile
	CPUFreq     string         `json:"cpu_freq,omitempty"` // the profile with CPU frequencies, if any step has one
	Step        int            `json:"step"`               // 1-based; 0 before the start
	Steps       int            `json:"steps"`
	Nodes       int            `json:"nodes"` // allocated now
	NodeList    string         `json:"node_list"`
	Priority    uint64         `json:"priority"`
	SlurmJobs   []uint32       `json:"slurm_jobs,omitempty"` // its companions or links, besides ID
	Submit      time.Time      `json:"submit"`
	NextChange  time.Time      `json:"next_change,omitzero"` // next planned start, grow, shrink or end
	NextNodes   int            `json:"next_nodes"`           // nodes after it
	Start       time.Time      `json:"start,omitzero"`       // actual, otherwise planned
	End         time.Time      `json:"end,omitzero"`         // actual, otherwise planned
	Moldable    *Moldable      `json:"moldable,omitempty"`   // its alternatives
	Components  []JobComponent `json:"components,omitempty"` // of coupled codes
	Bounds      string         `json:"bounds,omitempty"`     // of a malleable job: the profile with MIN-MAX nodes
	Lent        string         `json:"lent,omitempty"`       // nodes that a malleable job has beyond its profile
	Offers      []Offer        `json:"offers,omitempty"`     // to a malleable job, the last ones, oldest first
	Progress    *Progress      `json:"progress,omitempty"`   // as its application has reported it
	HeldIdle    int64          `json:"held_idle,omitempty"`  // node-seconds that its holds kept idle from jobs that waited
	Energy      *Energy        `json:"energy,omitempty"`     // what its nodes drew; evosacct adds it
	Plan        []Span         `json:"plan"`                 // planned steps (past ones as they were planned)
	Past        []Span         `json:"past"`                 // real allocations
}

// Energy holds what the nodes of a job drew.
type Energy struct {
	KWh      float64      `json:"kwh"`
	Measured bool         `json:"measured"` // all of it by Slurm (ConsumedEnergyRaw), and not by power.watts
	Steps    []StepEnergy `json:"steps,omitempty"`
}

// StepEnergy holds what the nodes of a step drew.
type StepEnergy struct {
	Step     int     `json:"step"` // 1-based
	KWh      float64 `json:"kwh"`
	Measured bool    `json:"measured"`
}

// Moldable holds the alternatives of a moldable job.
type Moldable struct {
	By           string        `json:"by"`     // completion, waste or node-hours
	Choice       int           `json:"choice"` // from 1: Profile is this one
	Fixed        bool          `json:"fixed"`  // the job has started: it stays with that
	Alternatives []Alternative `json:"alternatives"`
}

// Alternative is a profile that a moldable job may get, with its outcome by the last plan before
// the job's start, given the earlier jobs in the queue as planned.
type Alternative struct {
	Profile   string    `json:"profile"`
	Start     time.Time `json:"start,omitzero"` // zero: not known, or nowhere
	End       time.Time `json:"end,omitzero"`
	Waste     float64   `json:"waste"`            // node-hours allocated and not asked for
	NodeHours float64   `json:"node_hours"`       // allocated
	Reason    string    `json:"reason,omitempty"` // why it is infeasible now
}

// Suspended is the state of a job that Slurm has suspended; it runs or waits once it is resumed.
const Suspended = "suspended"

// Waiting is the state of a job that has ended a step and still lacks the next step's nodes.
const Waiting = "waiting"

// Span is a stretch of time with a constant node count.
type Span struct {
	Step     int       `json:"step"` // 1-based
	Start    time.Time `json:"start"`
	End      time.Time `json:"end,omitzero"` // zero: still going on
	Nodes    int       `json:"nodes"`
	NodeList string    `json:"node_list,omitempty"`
}

// Status describes the sidecar and its cluster.
type Status struct {
	Version      string    `json:"version"`
	Cluster      string    `json:"cluster"`
	SlurmVersion string    `json:"slurm_version"`
	Mode         string    `json:"mode"`  // act or observe
	Drive        string    `json:"drive"` // what Auto gets here
	DriveReason  string    `json:"drive_reason"`
	Strategy     string    `json:"strategy"`
	StrategyNote string    `json:"strategy_note,omitempty"` // why another plans in its place
	Policy       string    `json:"policy,omitempty"`        // of malleable jobs
	PolicyNote   string    `json:"policy_note,omitempty"`   // why another decides in its place
	Nodes        int       `json:"nodes"`
	Now          time.Time `json:"now,omitzero"` // by slurmctld's clock, as it answers
	Started      time.Time `json:"started"`
	LastCycle    time.Time `json:"last_cycle"`
	LastError    string    `json:"last_error,omitempty"`
	ClockLead    float64   `json:"clock_lead,omitempty"`  // seconds by which slurmctld's clock is ahead of its host's; the sidecar goes by slurmctld's
	SlurmCalls   int       `json:"slurm_calls"`           // in the last cycle
	PollPause    float64   `json:"poll_pause,omitempty"`  // seconds between two polls, to keep to slurm.share or the rate limit
	PollsApart   float64   `json:"polls_apart,omitempty"` // seconds between two polls at most, after an urgent one
	SlurmShare   float64   `json:"slurm_share"`           // of slurmctld's time that polls take, as measured: 0.01 is one percent
	MostShare    float64   `json:"most_share"`            // slurm.share
	SetAside     int       `json:"set_aside,omitempty"`   // jobs whose handling ended the sidecar
	Drain        *Drain    `json:"drain,omitempty"`       // nil: it is not switched off
	Operator     bool      `json:"operator,omitempty"`    // the caller may act on all users' jobs
	Lease        *Lease    `json:"lease,omitempty"`       // nil: there is no sidecar on a second host

	Power *PowerSummary `json:"power,omitempty"` // nil: power.mode is off
}

// Strategy is a planning algorithm that may be used.
type Strategy struct {
	Name       string              `json:"name"`
	Kind       string              `json:"kind"` // built in or plugin
	Version    string              `json:"version,omitempty"`
	Help       string              `json:"help,omitempty"`
	State      string              `json:"state"`            // in use, ready, starting, put aside, refused, policy
	Reason     string              `json:"reason,omitempty"` // of being put aside, refused, or no strategy
	InUse      bool                `json:"in_use"`
	By         string              `json:"by,omitempty"`      // who put it in use
	Since      time.Time           `json:"since,omitzero"`    // when it was put in use
	Instead    string              `json:"instead,omitempty"` // of this one, which the configuration has
	SHA256     string              `json:"sha256,omitempty"`  // of the plugin that runs
	Protocol   int                 `json:"protocol,omitempty"`
	Parameters []StrategyParameter `json:"parameters"`

	Plans     int            `json:"plans"`         // cycles that it planned
	Won       map[string]int `json:"won,omitempty"` // of auto: how many pools were planned as each strategy does
	Faults    int            `json:"faults"`        // of a plugin
	Fallen    int            `json:"fallen"`        // cycles that the built-in default planned in its place
	LastFault string         `json:"last_fault,omitempty"`
	FaultAt   time.Time      `json:"fault_at,omitzero"`
	Seconds   float64        `json:"seconds,omitempty"` // that the plugin took of the last cycle
}

// StrategyParameter is one that may be set.
type StrategyParameter struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Value   string   `json:"value"` // in use, otherwise the default
	Default string   `json:"default"`
	Help    string   `json:"help"`
	Min     string   `json:"min,omitempty"`
	Max     string   `json:"max,omitempty"`
	Choices []string `json:"choices,omitempty"`
}

// Configured stands for the configuration's strategy, with its parameters, when putting one in use.
const Configured = "@configured"

// StrategyRequest puts a strategy in use, or tries it.
type StrategyRequest struct {
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Trial compares a strategy's plan for the current state with that of the strategy in use.
type Trial struct {
	Present StrategyPlan `json:"present"` // by the strategy in use
	Tried   StrategyPlan `json:"tried"`
	Jobs    []TrialJob   `json:"jobs"` // queued evolving jobs, most urgent first
}

// StrategyPlan is a plan in figures, over the queued evolving jobs.
type StrategyPlan struct {
	Strategy   string            `json:"strategy"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Planned    int               `json:"planned"`    // jobs that have a plan
	Makespan   float64           `json:"makespan"`   // seconds from now to the end of the last
	Completion float64           `json:"completion"` // seconds from now to the end, on average
	Wait       float64           `json:"wait"`       // seconds from now to the start, on average
	Waste      float64           `json:"waste"`      // node-seconds allocated but not requested, in percent of those requested
	Seconds    float64           `json:"seconds"`    // that the planning took
}

// TrialJob is one job in both plans; a zero time: no plan.
type TrialJob struct {
	ID      uint32    `json:"id"`
	Profile string    `json:"profile"`
	Start   time.Time `json:"start,omitzero"` // at present
	End     time.Time `json:"end,omitzero"`

	TriedStart time.Time `json:"tried_start,omitzero"`
	TriedEnd   time.Time `json:"tried_end,omitzero"`
	TriedUnfit string    `json:"tried_unfit,omitempty"` // why there would be no plan
}

// NextRequest ends the current step. A caller may repeat it (if the answer was lost, or the wait
// was cut short) without ending another step.
type NextRequest struct {
	From    int      `json:"from"`              // the step that ends, as in the last Allocation, from 1
	Release []string `json:"release,omitempty"` // nodes that the application would free at a shrink
}

// Allocation holds what a job has now: the answer to next, env, hostfile, and run.
type Allocation struct {
	Ready bool   `json:"ready"` // false: the wait was cut short, ask again
	Done  bool   `json:"done"`  // the last step has ended; there is no next step
	Note  string `json:"note,omitempty"`
	Job   uint32 `json:"job"`
	Step  int    `json:"step"` // 1-based
	Steps int    `json:"steps"`
	Drive string `json:"drive"`
	Nodes int    `json:"nodes"`
	Parts []Part `json:"parts"` // base job first, then companions in order of age

	Components []Component `json:"components,omitempty"` // of coupled codes
	CPUFreq    string      `json:"cpu_freq,omitempty"`   // that srun should ask for in this step: a word or kHz

	Lost     []string `json:"lost,omitempty"`     // nodes that the job lost, because a node failed, since the call that began the step; in the answer to such a call, since the call before
	Restarts int      `json:"restarts,omitempty"` // how often Slurm put the job, or a link of its chain, back into the queue

	Coming *Coming `json:"coming,omitempty"` // nil if there is no further step
	Demand *Demand `json:"demand,omitempty"` // nil: nothing is demanded at present
}

// Demand holds what a malleable job must give back during its step.
type Demand struct {
	Offer    int64     `json:"offer"`
	Nodes    int       `json:"nodes"`
	Leaving  []string  `json:"leaving"`  // these nodes, unless the answer gives more
	Deadline time.Time `json:"deadline"` // at which they are taken, if it was not answered
	Why      string    `json:"why,omitempty"`
}

// Coming is the next step as currently planned. If the current step ends at another time, other
// nodes may come.
type Coming struct {
	Step     int       `json:"step"` // 1-based
	Nodes    int       `json:"nodes"`
	At       time.Time `json:"at,omitzero"` // zero if it is planned only once the current step ends
	Arriving []string  `json:"arriving,omitempty"`
	Leaving  []string  `json:"leaving,omitempty"` // unless next names others
	Handing  []string  `json:"handing,omitempty"` // from one component to another
}

// Component is one of a job's coupled codes, with its part of the nodes.
type Component struct {
	Name     string   `json:"name"`
	NodeList []string `json:"node_list"`
}

// JobComponent is a component of a job as evosqueue and the dashboard see it.
type JobComponent struct {
	Name     string `json:"name"`
	Profile  string `json:"profile"`
	Nodes    int    `json:"nodes"` // that it has now
	NodeList string `json:"node_list"`
}

// Part is one Slurm job's share of an allocation.
type Part struct {
	Job      uint32   `json:"job"`
	NodeList []string `json:"node_list"` // expanded, in Slurm's order
	CPUs     []int    `json:"cpus"`      // per node, allocated
}

// Event is a line of the event log.
type Event struct {
	ID     int64           `json:"id"` // ascending
	At     time.Time       `json:"at"`
	Job    uint32          `json:"job,omitempty"` // Slurm id of the base job; 0: the sidecar's own
	User   string          `json:"user,omitempty"`
	Kind   string          `json:"kind"`
	Detail json.RawMessage `json:"detail"`
	Text   string          `json:"text"` // both in words
}

// EventQuery selects events. With After, they are the next ones, otherwise the last.
type EventQuery struct {
	Job   uint32    // Slurm id of a job; 0: of all
	After int64     // id of an event
	Since time.Time // zero: ever
	Limit int       // largest number; 0 for as many as the server sends at once

	// Set by the server for the caller:
	Owner   *uint32 // only this user's jobs; nil for all
	Sidecar bool    // including the sidecar's own events
}

// Error is the body of every answer that is not 2xx.
type Error struct {
	Error string `json:"error"`
}
