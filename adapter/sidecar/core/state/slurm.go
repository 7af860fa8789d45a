package state

import (
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Standing holds how a queued job ages in Slurm, and which limits keep it out. Owner: slurm.
type Standing struct {
	Accrued      time.Time // since when its age counts in Slurm; zero: it does not count
	AccrualKnown bool
	Considered   bool // it was eligible at least once
	Ineligible   bool // it was not eligible until recently
	Forbidden    map[string]Forbidden
}

// Eligibility holds the answer of [snapshot.eligible], which is the same for all jobs with the
// same request.
type Eligibility struct {
	Nodes   []int
	Choices [][]int // nodes of each alternative of a constraint in brackets; nil if it has none
	Err     error
}

// Wish holds what a job requests of its nodes.
type Wish struct {
	Partition, Features    string
	CPUs                   int
	Memory                 int64
	Layout                 slurmctl.Layout
	Heterogenous           bool
	Excluded, Wanted, GRES string
	Reservation            string // of the site
}

// Refusal holds what Slurm said when it refused to move a job to a partition.
type Refusal struct {
	Why   string
	Until time.Time
}

// RuleBook holds the users' limits as last read.
type RuleBook struct {
	Limits *slurmctl.Limits // nil: not read, or not readable
	Read   time.Time        // when the read began
	Took   time.Duration    // how long the read took
}

// LicenseBook holds the licences of the cluster as last read.
type LicenseBook struct {
	Stock []slurmctl.LicenseStock
	Known bool      // false: not read, or not readable
	Read  time.Time // when the read began
}

// Subject returns the subject whose limits count for a Slurm job in a partition.
func Subject(r *slurmctl.Job, partition string) slurmctl.Subject {
	return slurmctl.Subject{User: r.User, UID: r.UID, Account: r.Account, QOS: r.QOS, Partition: partition}
}

// Forbidden holds why limits permanently keep a job out of a partition, and when the limits were read.
type Forbidden struct {
	Why  string
	Read time.Time
}

func NeedOf(p planner.Profile, chain bool) slurmctl.Need {
	return slurmctl.NeedOf(request.Sizes(p), request.Minutes(p, chain), chain)
}

// Epilog holds how long the jobs of a partition were COMPLETING, by user: the user whose job ended last comes last.
type Epilog struct {
	Users []EpilogOf
	Saved int64 // seconds, in the database
}

// EpilogOf is how long the jobs of a user were COMPLETING: a moving average.
type EpilogOf struct {
	UID  uint32
	Took time.Duration
}
