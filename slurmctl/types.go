package slurmctl

import "time"

// JobID is Slurm's numeric job ID. Every array task and every component of a heterogeneous job has
// its own once it has its own record.
type JobID uint32

// Unlimited is the TimeLimit of a job or the MaxTime of a partition without a bound.
const Unlimited time.Duration = -1

// ShortestLimit is the shortest time limit: Slurm counts limits in whole minutes.
const ShortestLimit = time.Minute

// JobState is a job's base state as squeue's %T prints it, e.g. "PENDING".
type JobState string

// The states that callers act on; other states are passed through as printed.
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

// Job is a record of squeue.
type Job struct {
	ID           JobID
	Display      string // as squeue shows it: "12", "12_3", "12_[4-9]", "12+1"; at most MostTasksText of tasks
	ArrayJobID   JobID  // the array's ID; equals ID if the job is not an array
	ArrayTasks   int    // tasks that this record stands for, ≥ 1 ("12_[4-9]" is 6)
	ArrayLimit   int    // of a record of several tasks: how many of the array may run at once ("12_[4-9%2]"); 0: all
	Heterogenous bool   // component of a heterogeneous job

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
	MinMemory  int64    // MiB per node asked for; 0 if not given
	Layout     Layout   // the fewest sockets, cores, and threads asked for
	TRESPer    string   // --gres, --gpus and similar, "" if none
	Exclusive  bool     // whole nodes (OverSubscribe=NO)
	Dependency string
	Licenses   string // what a running job has, or a pending one asks for; see ParseLicenses

	TimeLimit   time.Duration // Unlimited if none
	SubmitTime  time.Time
	StartTime   time.Time // actual, expected, or begin time of a pending job; zero if unknown
	EndTime     time.Time // StartTime + TimeLimit, or actual; zero if unknown
	Reservation string    // "" if none
	Nice        int

	// Set by JobsByID; Jobs sets them from Slurm 24.05 on.
	ExitCode     int    // of the batch script, once ended
	ExitSignal   int    // signal that ended it; 0 if none
	AdminComment string // written by administrators only
}

// Node is a compute node.
type Node struct {
	Name       string
	State      string // base state in lower case without suffix: "idle", "mixed", "allocated", "down", …
	Flags      string // the suffix characters of sinfo, e.g. "*" (not responding), "-" (planned)
	Partitions []string
	CPUs       int
	CPUsAlloc  int
	Memory     int64 // MiB
	Layout     Layout
	Features   []string
	GRES       string
	Weight     int
}

// Layout counts the sockets of a node, the cores of each socket, and the threads of each core. A job asks for no fewer; zeros
// ask for nothing.
type Layout struct{ Sockets, Cores, Threads uint16 }

// Partition is a Slurm partition.
type Partition struct {
	Name          string
	Default       bool
	Up            bool
	MaxTime       time.Duration // Unlimited if none
	DefaultTime   time.Duration // Unlimited if none
	MinNodes      int
	MaxNodes      int    // 0 for no bound
	OverSubscribe string // NO, YES, FORCE:n, EXCLUSIVE (26.05 shows NO for that)
	Nodes         []string
}

// Reservation is a Slurm reservation.
type Reservation struct {
	Name      string
	Start     time.Time
	End       time.Time
	Nodes     []string
	Users     []string
	Accounts  []string
	Partition string
	Flags     []string
	Licenses  []License
	Active    bool
}
