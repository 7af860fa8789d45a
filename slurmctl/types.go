package slurmctl

import "time"

// JobID is Slurm's numeric job id. Every array task and every component of a
// heterogeneous job has one of its own once it is a record of its own.
type JobID uint32

// Unlimited is the TimeLimit of a job, or the MaxTime of a partition, without bound.
const Unlimited time.Duration = -1

// ShortestLimit is the shortest time limit: Slurm counts limits in whole minutes.
const ShortestLimit = time.Minute

// JobState is a job's base state as squeue's %T prints it, e.g. "PENDING".
type JobState string

// The states that callers act on; others are passed through as printed.
const (
	Pending     JobState = "PENDING"
	Running     JobState = "RUNNING"
	Suspended   JobState = "SUSPENDED"
	Configuring JobState = "CONFIGURING"
	Completing  JobState = "COMPLETING"
	Completed   JobState = "COMPLETED"
	Cancelled   JobState = "CANCELLED"
	Failed      JobState = "FAILED"
	TimedOut    JobState = "TIMEOUT"
)

// Job is one record of squeue.
type Job struct {
	ID           JobID
	Display      string // as squeue shows it: "12", "12_3", "12_[4-9]", "12+1"
	ArrayJobID   JobID  // the array's id; equals ID for a job that is no array
	ArrayTasks   int    // tasks that this record stands for, ≥ 1 ("12_[4-9]" is 6)
	Heterogenous bool   // a component of a heterogeneous job

	Name      string // free text of the user
	User      string
	UID       uint32
	Account   string
	QOS       string
	Partition string // one, or a comma list while pending
	Comment   string // free text of the user

	State    JobState
	Reason   string // of a pending job, e.g. "Resources", "BeginTime"
	Priority uint64 // 0: on hold

	NumNodes   int
	NumCPUs    int
	NodeList   []string // expanded; empty while pending
	BatchHost  string
	ReqNodes   []string // --nodelist
	ExcNodes   []string // --exclude
	Features   string   // --constraint as given
	MinCPUs    int      // CPUs per node asked for
	MinMemory  int64    // MiB per node asked for; 0: not given
	TRESPer    string   // --gres, --gpus and friends, "" if none
	Exclusive  bool     // whole nodes (OverSubscribe=NO)
	Dependency string

	TimeLimit   time.Duration // Unlimited: none
	SubmitTime  time.Time
	StartTime   time.Time // actual, or expected or begin time of a pending job; zero: unknown
	EndTime     time.Time // StartTime + TimeLimit, or actual; zero: unknown
	Reservation string    // "" if none
	Nice        int

	// Of JobsByID; Jobs fills them from Slurm 24.05 on.
	ExitCode     int    // of the batch script, once ended
	ExitSignal   int    // that ended it; 0: none
	AdminComment string // written by administrators only
}

// Node is one compute node.
type Node struct {
	Name       string
	State      string // base state in lower case without suffix: "idle", "mixed", "allocated", "down", …
	Flags      string // the suffix characters of sinfo, e.g. "*" (not responding), "-" (planned)
	Partitions []string
	CPUs       int
	CPUsAlloc  int
	Memory     int64 // MiB
	Features   []string
	GRES       string
	Weight     int
}

// Partition is one partition.
type Partition struct {
	Name          string
	Default       bool
	Up            bool
	MaxTime       time.Duration // Unlimited: none
	DefaultTime   time.Duration // Unlimited: none given
	MinNodes      int
	MaxNodes      int    // 0: no bound
	OverSubscribe string // NO, YES, FORCE:n, EXCLUSIVE (26.05 shows NO for that)
	Nodes         []string
}

// Reservation is one reservation.
type Reservation struct {
	Name      string
	Start     time.Time
	End       time.Time
	Nodes     []string
	Users     []string
	Accounts  []string
	Partition string
	Flags     []string
	Active    bool
}
