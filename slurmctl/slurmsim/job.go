package slurmsim

import (
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// User issues commands and owns jobs.
type User struct {
	Name    string
	UID     uint32
	Account string

	Operator bool // AdminLevel in slurmdbd
}

// may reports whether the user may change others' jobs, and reservations.
func (u User) may() bool { return u.UID == 0 || u.Operator }

// Root may do everything.
var Root = User{Name: "root"}

// Job describes a job to submit and how it will run.
type Job struct {
	User             User
	Name             string
	Comment          string
	Script           string // of a batch job; "" for salloc
	Partition        string // "" for the default partition
	QOS              string // "" for normal
	Nodes            int
	CPUs             int    // of every node; 0 for whole nodes
	MemoryPerNode    *int64 // MiB; 0 for all of it
	MemoryPerCPU     int64
	GRES             []slurmctl.GRES // on every node
	Layout           slurmctl.Layout // the fewest sockets, cores, and threads of every node
	TimeLimit        time.Duration
	Begin            time.Time
	Held             bool
	Nice             int
	After            []Dependency
	KillOnInvalidDep bool           // ends the job once its dependencies can never be met
	Expand           slurmctl.JobID // job to merge into
	NodeList         []string       // nodes that it must include
	Exclude          []string
	Constraint       string // as slurmctl.ParseConstraint reads it
	Switches         int    // --switches: the most leaf switches that it wants to be on; 0 for any number
	SwitchWait       time.Duration
	Reservation      string
	Licenses         string
	Array            int // tasks, from 1 on; 0 for no array
	ArrayLimit       int // of them may run at once; 0 for all

	// What the job does once its script runs. With Program, it ends when Program returns. With
	// Lasts, it runs that long and ends with ExitCode. With neither, it runs until something ends
	// it.
	Program  Program
	Lasts    time.Duration
	ExitCode int
	Stubborn bool // it ignores SIGTERM
}

// Dependency is a part of --dependency: "afterok", "afterany", or "afternotok" of a job.
type Dependency struct {
	Kind string
	Job  slurmctl.JobID
}

// job is a record of slurmctld. Its NodeList and BatchHost are computed when it is shown.
type job struct {
	slurmctl.Job
	Request    Job
	Part       *partition
	Parts      []*partition // the partitions if submitted to several; part is the current one
	Required   nodeSet      // required nodes that exist; nil for none
	Excluded   nodeSet
	Either     []string // features in brackets
	Counted    []slurmctl.Counted
	Nodes      []int   // its nodes in the order in which it got them; never changed in place
	Set        nodeSet // the same as a set, for an active job
	Memory     int64   // of every node, if memory counts
	HostNode   int     // according to slurmctld
	ScriptNode int     // the node of the batch script
	Expands    slurmctl.JobID
	Resized    bool
	Gone       map[int]time.Duration // nodes taken from it while it ran, and the last time
	Scattered  time.Time             // since when it could be on more leaf switches than it wants
	Planned    time.Time             // start expected by the backfill scheduler
	Ends       int64                 // EndTime in seconds, set even without a limit
	Epoch      int                   // changes whenever the job's agenda entries become invalid
	Left       time.Duration
	Resumed    time.Duration
	Stood      time.Duration     // total time suspended
	Final      slurmctl.JobState // state after completing
	Requeued   bool              // pending again after completing
	Revoked    time.Time         // second of its last requeue
	Restarts   int               // number of requeues
	Stale      bool              // the state on disk is outdated
}

func (j *job) active() bool {
	return j.State == slurmctl.Running || j.State == slurmctl.Suspended || j.State == slurmctl.Configuring
}

// whole reports whether the job has its nodes exclusively.
func (j *job) whole() bool { return j.Request.CPUs == 0 }

// plain reports whether a pending job waits only for nodes, unless someone changes it.
func (j *job) plain() bool {
	return j.Priority > 0 && len(j.Request.After) == 0 && j.Request.Begin.IsZero() && len(j.Parts) == 0 && j.Licenses == "" && j.Part.against(j) == ""
}

// accrues returns since when a job's age counts.
func (j *job) accrues() time.Time {
	since := j.SubmitTime
	if j.Request.Begin.After(since) {
		since = j.Request.Begin
	}
	return since
}

// somewhere tries something in each partition of a pending job until it succeeds.
func (j *job) somewhere(try func() bool) bool {
	if len(j.Parts) == 0 {
		return try()
	}
	for _, j.Part = range j.Parts {
		if try() {
			return true
		}
	}
	j.Part = j.Parts[0]
	return false
}

// wholeMinutes rounds a time limit up, as slurmctld does.
func wholeMinutes(d time.Duration) time.Duration { return (d + time.Minute - 1).Truncate(time.Minute) }

// firstPriority is the priority of the first job under priority/basic; each later job has one less.
const firstPriority = 4294901759

// forever is the duration that Slurm uses for "no limit".
const forever = 365 * 24 * time.Hour

// defaultQOS is the QOS of jobs that name none.
const defaultQOS = "normal"

// scarce reports whether a job's memory or generic resources count.
func (j *job) scarce() bool { return j.Memory > 0 || len(j.Request.GRES) > 0 }

// plannedFor returns how long a job is planned for.
func (j *job) plannedFor() time.Duration {
	most := j.Part.MaxTime
	if most <= 0 {
		most = forever
	}
	if j.TimeLimit == slurmctl.Unlimited {
		return most
	}
	return min(j.TimeLimit, most)
}
