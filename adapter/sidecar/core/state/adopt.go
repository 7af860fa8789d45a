package state

import (
	"context"
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Adopted holds what a job asked for when it was adopted, and how it was found. Owner: adopt.
type Adopted struct {
	Asked           *slurmctl.JobRequest // nil: not known yet
	GRES            []slurmctl.GRES      // generic resources that it has on every node
	Chain           []slurmctl.JobID
	Bound           string        // nodes that the user's request allows; "": any
	May             []string      // the same nodes by name
	Doubtful        bool          // from a database that may be older than what another sidecar did since: Slurm has not been asked yet
	Script          string        // host of its batch script, if it was found running and the host is known
	SuspendedBefore time.Duration // how long it was suspended before it was found running
	Settled         bool          // it has passed a whole cycle, in this or an earlier run of the sidecar
	Groups          []string      // groups of the site's lists with its user in them; nil: not known
	Admitted        Place         // where the lists let it in
	Unmarked        bool          // this run of the sidecar has seen it without the mark of a job that was let go
}

// Place is where a Slurm job is, as the site's lists of allowed and denied jobs see it.
type Place struct{ Account, QOS, Partition string }

// Believed records that what the database has of the job was compared with Slurm.
func (a *Adopted) Believed() { a.Doubtful = false }

// SawMark records whether the job has the mark of one that was let go.
func (a *Adopted) SawMark(marked bool) { a.Unmarked = a.Unmarked || !marked }

// PartsBy lists the Slurm jobs of a job, with node lists as `text` writes them.
func PartsBy(j *Job, text func([]string) string) []row.Part {
	var rows []row.Part
	for i, id := range j.Chain {
		rows = append(rows, row.Part{SlurmID: uint32(id), Step: i + 1})
	}
	if !j.Mode.StepsAreJobs {
		for _, p := range j.Held {
			rows = append(rows, row.Part{SlurmID: uint32(p.ID), Step: p.Step, NodeList: text(p.Nodes)})
		}
	}
	return rows
}

// RequestRead holds the request of a Slurm job, or why the request is not known.
type RequestRead struct {
	Request         slurmctl.JobRequest
	User            *slurmctl.User
	Groups          []string // of the site's lists, with the user in them
	UserErr         error    // why the user is not known
	Err             error
	Script          string        // the node of the batch script, if the job was found running; "" if not known
	SuspendedBefore time.Duration // how long Slurm had suspended such a job by then
	Known           bool

	Tries int       // failed attempts to understand the request
	Again time.Time // when the next attempt is due
}

// Why returns why the request is not understood, or why its user is not known.
func (a *RequestRead) Why() error { return errors.Join(a.Err, a.UserErr) }

// Transient reports whether the same request may succeed later.
func Transient(err error) bool {
	return errors.Is(err, slurmctl.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Script holds what the batch script of a job asks for, if the job's comment does not have the whole request.
type Script struct {
	Given request.Request
	Asked bool
	Err   error
	Known bool

	Tries int       // failed tries
	Again time.Time // when it is read again
}

// Texts identifies what a request comes from. Nothing else has an effect on it.
type Texts struct {
	Comment string
	Script  *Script
	Nodes   int // of the cluster
}

// Bounded holds the request in a job's texts, compared with the cluster, or why the request cannot be met.
type Bounded struct {
	From    Texts
	Request request.Request
	Err     error
}

// Chain identifies a chain by its first job, and the user of all of its jobs.
type Chain struct {
	First slurmctl.JobID
	UID   uint32
}

// Links holds the jobs of a chain after its first, by step: Jobs[i] has the step Steps[i].
type Links struct {
	Steps  []int
	Jobs   []slurmctl.JobID
	Latest time.Time // when the last of them was submitted
}

// AllLinks holds the links of all chains that are not adopted.
type AllLinks struct {
	Of     map[Chain]Links
	Unread map[uint32]bool // users with jobs whose scripts are unread
}

// A parked job that cannot be driven, because it was refused or because Slurm refuses to start it, would wait
// in Slurm's queue without end. evosqueue shows the reason from the start. After give_up, the site's policy
// (undriven) keeps the job, releases it as a stock job, or cancels it.

// Refused holds a job with a marker that the sidecar does not drive.
type Refused struct {
	api.Job
	Since  time.Time
	Again  time.Time // when the next attempt to release or cancel it follows
	Denied bool      // because of the site's lists, which may change
	Was    bool      // it was adopted before: its start time may be a planned one

	Drained bool // only since the sidecar is drained, or because it let the job go
	LetGo   bool // Slurm alone has it: nothing is left to do

	Begin       time.Time // of its request, to let it go
	Peak        int       // nodes of its largest step
	PeakRefused bool      // Slurm does not give it so many
}
