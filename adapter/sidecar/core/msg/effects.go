package msg

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Effect describes something that the shell must do.
type Effect interface{ effect() }

type (
	// Task is a command on Slurm. The shell runs it beside all others and answers with an
	// [Outcome]. If it has an intent, the shell writes the intent first. If that fails, the
	// shell does not run the command (ErrNotWritten).
	Task struct {
		ID     int64
		Intent *row.Intent
		// Gently says that the command must not wait for slurmctld's backfill scheduler. If it
		// would have to wait, it fails with ErrBackfilling.
		Gently bool
		Command
	}
	// Poll asks the shell to poll Slurm (an [Observation]), and to read its configuration if
	// Config is set. Gently: wait until the backfill scheduler rests, if that is soon. Measure:
	// find out what a nearly empty command costs this host.
	Poll struct{ Config, Gently, Measure bool }
	// PollNodes asks the shell to poll only the nodes ([NodesSeen]).
	PollNodes struct{ Gently bool }
	// Plan asks the strategy to plan a problem. The next input must be [Planned].
	Plan struct{ Problem *Problem }
	// Resize asks the malleability policy in use, a plugin. The next input must be
	// [Resized].
	Resize struct{ Question Question }
	// Reply answers a [Call].
	Reply struct {
		ID         uint64
		Allocation api.Allocation
		Change     *api.Change // for a call that changes a job
		Offer      *api.Offer
		Answer     *api.Answer
		Progress   *api.Progress
		Cancelled  *api.Cancelled
		Place      *api.Placement
		Submit     *api.Submission // in place of an answer: the caller must submit a job first
		Err        error
	}
	// Log holds a line for the log.
	Log struct {
		Level  string // debug, info, warning, error
		Text   string
		Fields map[string]any
		Err    error
	}
	// Wake says when to call Step again if nothing happens before.
	Wake struct{ At time.Time }
)

// MostWake is how long after a step Wake comes at the latest.
const MostWake = time.Minute

func (Task) effect() {}

func (Poll) effect() {}

func (PollNodes) effect() {}

func (Plan) effect() {}

func (Resize) effect() {}

func (Reply) effect() {}

func (Log) effect() {}

func (Wake) effect() {}

// These errors of tasks affect the core's decisions, as do errors of package slurmctl.
var (
	// ErrBackfilling reports that slurmctld's backfill scheduler is at work, or about to be.
	ErrBackfilling = errors.New("slurmctld's backfill scheduler is at work")
	// ErrNotWritten reports that an intent could not be written, and nothing was done.
	ErrNotWritten = errors.New("the sidecar's database cannot be written")
	// ErrSiteRefuses reports that the site's plugins refuse what the job needs.
	ErrSiteRefuses = errors.New("refused by the site")
	// ErrNeverMerged reports that Slurm merges nothing into a job, and there is no alternative.
	ErrNeverMerged = errors.New("Slurm merges nothing into this job, and the sidecar may submit no companions for its user")
)

// Command changes Slurm, or queries it.
type Command interface{ command() }

type (
	// Start lets a pending job start now in a hold, and in one of its partitions if one is
	// named. It waits briefly for the job to run. The result is the *slurmctl.Job seen running,
	// or nil if it was not seen running.
	Start struct {
		Job       slurmctl.JobID
		Hold      string
		Inside    string // the reservation of the site in which it runs; "": none
		Partition string
		Switches  int  // what the job asks for with --switches: its nodes are chosen, and Slurm must not wait for others
		Gently    bool // for its queries, see Task
		OpenRow   bool // have slurmdbd open a row, by a resize that changes nothing
	}
	// Grow brings nodes to a job by an expander; the result is [Grown].
	Grow struct {
		Base        slurmctl.JobID
		As          uint32 // uid that submits the expanders
		Own         bool   // the sidecar submits in its own name, or not at all
		ByJob       bool   // a process of the job submits the expander
		Opens       bool   // only open the hold, so that it can
		Refusal     string // why Slurm did not grant it, as that process reports
		More        bool   // others bring further nodes from the hold after these
		Merge       bool   // into the base job; otherwise the expander stays as a companion
		NeedsDBD    bool   // for a merge
		Name        string // of the expander
		Step        int    // 1-based step that gets the nodes
		Nodes       []string
		Held        []Part    // current parts of the job
		Hold        string    // on the nodes; "" if none
		Inside      string    // the reservation of the site in which the job runs; "": none
		HoldBegins  bool      // the hold must begin now, before its time
		LetIn       []string  // users to let into the hold, which is closed to all users before
		StaysInHold bool      // a job that runs in a hold cannot be moved out of it
		StepMgr     bool      // the expander has a step manager, and is usable once its prologs have ended
		StaysUntil  time.Time // when the expander has ended at the latest
		Request     slurmctl.AllocateRequest
		Moved       bool             // a plugin of the site may put the expander into another partition or QOS
		MayPark     bool             // the expander may be submitted parked if a site's plugin refuses it otherwise
		Expanders   []slurmctl.JobID // existing expanders that are not merged yet
		GaveBack    time.Time        // when the job last gave back some of the nodes; zero if it had none of them
	}
	// Shrink gives back nodes of a job, companions' nodes first, newest first. The
	// result is the []Part that the job has afterwards.
	Shrink struct {
		Held     []Part
		Surplus  []string
		NeedsDBD bool
	}
	// Detach moves a running job out of the hold in which it started, back into its reservation of the site if it has one. It
	// also gives up the hold if GiveUp is set.
	Detach struct {
		Job    slurmctl.JobID
		Hold   string
		GiveUp bool
		Inside string
	}
	// Update changes a job. It mirrors a planned start, parks a released job, or moves a job
	// out of a hold.
	Update struct {
		Job    slurmctl.JobID
		Change slurmctl.JobUpdate
		As     uint32 // uid of the user in whose name the job is changed; 0 is the sidecar's own
	}
	// Unfold gives tasks of an array (see slurmctl.Client.UpdateTasks) records of their own, and a name. The whole array
	// first gets another name, so that squeue shows the rest apart; "" if it has one.
	Unfold struct {
		Array       slurmctl.JobID
		RestName    string
		Tasks, Name string
	}
	// ExtendLimits raises time limits.
	ExtendLimits struct{ Parts []Limit }
	// Signal sends a signal to all processes of some jobs.
	Signal struct {
		Jobs []slurmctl.JobID
		Name string
	}
	// Cancel cancels jobs. If Done, they are companions that have done their work: they end as COMPLETED where Slurm allows it.
	Cancel struct {
		Jobs []slurmctl.JobID
		Done bool
	}
	// Requeue puts a running job back into the queue, and ends its companions.
	Requeue struct {
		Job    slurmctl.JobID
		Beside []slurmctl.JobID
	}
	// Ask queries only some jobs; the result is a []slurmctl.Job.
	Ask struct{ Jobs []slurmctl.JobID }

	// Reserve creates a hold.
	Reserve struct{ Request slurmctl.ReservationRequest }
	// ChangeHold changes a hold.
	ChangeHold struct {
		Name   string
		Change slurmctl.ReservationUpdate
	}
	// GiveUpHold deletes a hold. It first moves the jobs that refer to the hold out of it.
	GiveUpHold struct {
		Name    string
		TakeOut []TakenOut
	}

	// ReadRequest reads the request of a job; the result is [Asked]. Try, if set, is the job's
	// start time. It is written again, to see whether the site lets the job be changed.
	// Growth, if set, is how many nodes a job with First nodes will grow by. The user, or with
	// Own the sidecar, then also tries whether the site allows this growth.
	ReadRequest struct {
		Job           slurmctl.JobID
		UID           uint32
		Config        slurmctl.Config
		Try           time.Time
		First, Growth int
		Own           bool
		Running       bool     // also report where its script runs, and how long the job has run
		Groups        []string // also report which of these groups the user is in
	}
	// ReadScript reads the request in the batch script of a job; the result is [Scripted].
	ReadScript struct{ Job slurmctl.JobID }
	// ReadLimits reads the limits of users, accounts, QOS and partitions; the result is a
	// *slurmctl.Limits.
	ReadLimits struct{ Config slurmctl.Config }
	// ReadLicenses reads which licences the cluster has; the result is a []slurmctl.LicenseStock.
	ReadLicenses struct{}
	// ReadAccrual reads since when Slurm counts the age of jobs; the result is a
	// map[slurmctl.JobID]time.Time.
	ReadAccrual struct{}
	// ReadTimeUsed reads how long a job has run, without the time during which it was
	// suspended; the result is a [time.Duration].
	ReadTimeUsed struct{ Job slurmctl.JobID }

	// PowerUp switches nodes on.
	PowerUp struct{ Nodes []string }
	// PowerDown switches off those of the nodes that are simply idle.
	PowerDown struct{ Nodes []string }
	// DrainNodes keeps jobs from nodes that did not come up.
	DrainNodes struct {
		Nodes  []string
		Reason string
	}
	// KeepUp prevents nodes from being switched off for now.
	KeepUp struct{ Nodes []string }
	// Reconfigure makes slurmctld read its configuration again.
	Reconfigure struct{}
	// Contact makes Slurm ask idle nodes to answer.
	Contact struct{ Nodes []string }
)

func (Start) command() {}

func (Grow) command() {}

func (Shrink) command() {}

func (Detach) command() {}

func (Update) command() {}

func (Unfold) command() {}

func (ExtendLimits) command() {}

func (Signal) command() {}

func (Cancel) command()  {}
func (Requeue) command() {}

func (Ask) command() {}

func (Reserve) command() {}

func (ChangeHold) command() {}

func (GiveUpHold) command() {}

func (ReadRequest) command() {}

func (ReadScript) command() {}

func (ReadLimits) command() {}

func (ReadLicenses) command() {}

func (ReadAccrual) command() {}

func (ReadTimeUsed) command() {}

func (PowerUp) command() {}

func (PowerDown) command() {}

func (DrainNodes) command() {}

func (KeepUp) command() {}

func (Reconfigure) command() {}

func (Contact) command() {}

// Part holds what a job has through one Slurm job: its base job, or a companion.
type Part struct {
	ID    slurmctl.JobID
	Step  int // 1-based step that the part came with
	Nodes []string
}

// Limit holds a job's new time limit.
type Limit struct {
	Job   slurmctl.JobID
	Limit time.Duration
}

// TakenOut identifies a job to move out of a hold, with the other reservations that it requests.
type TakenOut struct {
	Job  slurmctl.JobID
	Rest string
}

// Grown holds the result of a [Grow]. An error undoes none of it: jobs and nodes that are there
// remain.
type Grown struct {
	Expanders []slurmctl.JobID // expanders that still exist and are not merged
	Opened    bool             // the hold was opened to the users
	HoldGone  bool             // the hold was given up
	Stays     bool             // the companion stays in the hold, and cannot be moved out of it
	Parked    bool             // the expander was submitted parked
	Never     error            // why Slurm merges nothing into the job; a companion was requested instead
	NotYet    string           // what the growth must wait for
	Limit     string           // of the site, in words, if it currently prevents the growth
	After     []Part           // current parts of the job; nil if unchanged
}

// Asked holds the request of a job.
type Asked struct {
	Request slurmctl.JobRequest
	User    *slurmctl.User
	UserErr error    // why the user is not known
	Groups  []string // of ReadRequest.Groups
	Script  string   // the node of the batch script, if the job runs; "" if not known
	// Used is how long a running job has run without the time during which it was suspended; 0 if not known.
	Used time.Duration
}

// Scripted holds the request in a job's script.
type Scripted struct {
	Request request.Request
	Asked   bool
	Err     error // why the request is wrong
}
