package core

import (
	"errors"
	"time"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Effect is something that is to be done.
type Effect interface{ effect() }

type (
	// Task is a command on Slurm, to be run beside all others and answered by an
	// [Outcome]. With an intent, that is written before: what cannot be written down is
	// not done (ErrNotWritten).
	Task struct {
		ID     int64
		Intent *row.Intent
		// Gently says that it must not wait for slurmctld's backfill scheduler: where it
		// would have to, it fails with ErrBackfilling.
		Gently bool
		Command
	}
	// Poll is to poll Slurm (an [Observation]), and to read its configuration if that is
	// wanted. Gently: once the backfill scheduler rests, if that is soon. Measure: find out
	// what a command that asks for next to nothing costs this host.
	Poll struct{ Config, Gently, Measure bool }
	// PollNodes is to poll the nodes alone ([NodesSeen]).
	PollNodes struct{ Gently bool }
	// Plan is to have the strategy plan a problem, and to give [Planned] as the next input.
	Plan struct{ Problem *Problem }
	// Resize is to ask the malleability policy in use, a plugin, and to give [Resized] as the next
	// input.
	Resize struct{ Question Question }
	// Reply answers a [Call].
	Reply struct {
		ID         uint64
		Allocation api.Allocation
		Change     *api.Change // of a call that has one
		Offer      *api.Offer
		Answer     *api.Answer
		Progress   *api.Progress
		Cancelled  *api.Cancelled
		Err        error
	}
	// Log is a line for the log.
	Log struct {
		Level  string // debug, info, warning, error
		Text   string
		Fields map[string]any
		Err    error
	}
	// Wake is when to call Step again, should nothing happen before.
	Wake struct{ At time.Time }
)

func (Task) effect()      {}
func (Poll) effect()      {}
func (PollNodes) effect() {}
func (Plan) effect()      {}
func (Resize) effect()    {}
func (Reply) effect()     {}
func (Log) effect()       {}
func (Wake) effect()      {}

// The errors of tasks that the core goes by, beside those of package slurmctl.
var (
	// ErrBackfilling says that slurmctld's backfill scheduler is at work, or about to be.
	ErrBackfilling = errors.New("slurmctld's backfill scheduler is at work")
	// ErrNotWritten says that an intent could not be written, and nothing was done.
	ErrNotWritten = errors.New("the sidecar's database cannot be written")
	// ErrSiteRefuses says that the site's plugins refuse what the job needs.
	ErrSiteRefuses = errors.New("refused by the site")
	// ErrNeverMerged says that Slurm merges nothing into a job, and nothing else can be done.
	ErrNeverMerged = errors.New("Slurm merges nothing into this job, and the sidecar may submit no companions for its user")
)

// Command is a change of Slurm, or a question to it.
type Command interface{ command() }

type (
	// Start lets a pending job go inside a hold, now, in one of its partitions if one is
	// named, and waits for a moment for it to run. The result is the *slurmctl.Job that was
	// seen to run, nil if it was not.
	Start struct {
		Job       slurmctl.JobID
		Hold      string
		Partition string
		Gently    bool // the questions about it, see Task
	}
	// Grow brings a job nodes by an expander; the result is [Grown].
	Grow struct {
		Base        slurmctl.JobID
		As          uint32 // uid in whose name expanders are submitted
		Own         bool   // that is the sidecar's own
		Merge       bool   // into the base job; else the expander stays, as a companion
		NeedsDBD    bool   // at a merge
		Name        string // of the expander
		Step        int    // 1-based, whose nodes these are
		Nodes       []string
		Held        []Part    // what the job has
		Hold        string    // on the nodes; "": none
		HoldBegins  bool      // it is to begin now, before its time
		LetIn       []string  // users, to the hold that nobody may use before
		StaysInHold bool      // what runs in a hold cannot be taken out of it
		StepMgr     bool      // what it brings has a step manager, and is of use once its prologs have ended
		StaysUntil  time.Time // when that has ended at the latest
		Request     slurmctl.AllocateRequest
		MayPark     bool             // the expander, where a site's plugin refuses it otherwise
		Expanders   []slurmctl.JobID // that there are and that are not merged yet
		GaveBack    time.Time        // when the job gave some of the nodes back, last; zero: it had none of them
	}
	// Shrink gives nodes of a job back, those of companions first, newest first. The
	// result is the []Part that it has then.
	Shrink struct {
		Held     []Part
		Surplus  []string
		NeedsDBD bool
	}
	// Detach takes a running job out of the hold that it was started in, and gives the
	// hold up.
	Detach struct {
		Job    slurmctl.JobID
		Hold   string
		GiveUp bool
	}
	// Update changes a job: a planned start is mirrored, one that was let go is parked, one
	// is sent out of a hold.
	Update struct {
		Job    slurmctl.JobID
		Change slurmctl.JobUpdate
		As     uint32 // uid of the user in whose name it is changed; 0: the sidecar's own
	}
	// ExtendLimits raises time limits.
	ExtendLimits struct{ Parts []Limit }
	// Signal sends a signal to all of some jobs.
	Signal struct {
		Jobs []slurmctl.JobID
		Name string
	}
	// Cancel cancels jobs.
	Cancel struct{ Jobs []slurmctl.JobID }
	// Ask asks for some jobs alone; the result is a []slurmctl.Job.
	Ask struct{ Jobs []slurmctl.JobID }

	// Reserve makes a hold.
	Reserve struct{ Request slurmctl.ReservationRequest }
	// ChangeHold changes one.
	ChangeHold struct {
		Name   string
		Change slurmctl.ReservationUpdate
	}
	// GiveUpHold gives one up. Jobs that refer to it are taken out of it before.
	GiveUpHold struct {
		Name    string
		TakeOut []TakenOut
	}

	// ReadRequest reads what a job asked for; the result is [Asked]. Try, if given, is the
	// job's start time: it is written anew, to see whether the site lets the job be changed.
	// Growth, if given, is what a job with so many nodes at first is to grow by: whether the
	// site lets that be asked for is tried, too, by the user or (Own) by the sidecar.
	ReadRequest struct {
		Job           slurmctl.JobID
		UID           uint32
		Config        slurmctl.Config
		Try           time.Time
		First, Growth int
		Own           bool
		Running       bool // where its script runs, and for how long it has, is to be told
	}
	// ReadScript reads what the batch script of a job asks for; the result is [Scripted].
	ReadScript struct{ Job slurmctl.JobID }
	// ReadLimits reads the limits of users, accounts, QOS and partitions; the result is a
	// *slurmctl.Limits.
	ReadLimits struct{ Config slurmctl.Config }
	// ReadAccrual reads since when Slurm counts jobs' age; the result is a
	// map[slurmctl.JobID]time.Time.
	ReadAccrual struct{}
	// ReadTimeUsed reads for how long a job has run without the time for which it was
	// suspended; the result is a [time.Duration].
	ReadTimeUsed struct{ Job slurmctl.JobID }

	// PowerUp switches nodes on.
	PowerUp struct{ Nodes []string }
	// KeepUp keeps nodes from being switched off for now.
	KeepUp struct{ Nodes []string }
	// Reconfigure has slurmctld read its configuration again.
	Reconfigure struct{}
)

func (Start) command()        {}
func (Grow) command()         {}
func (Shrink) command()       {}
func (Detach) command()       {}
func (Update) command()       {}
func (ExtendLimits) command() {}
func (Signal) command()       {}
func (Cancel) command()       {}
func (Ask) command()          {}
func (Reserve) command()      {}
func (ChangeHold) command()   {}
func (GiveUpHold) command()   {}
func (ReadRequest) command()  {}
func (ReadScript) command()   {}
func (ReadLimits) command()   {}
func (ReadAccrual) command()  {}
func (ReadTimeUsed) command() {}
func (PowerUp) command()      {}
func (KeepUp) command()       {}
func (Reconfigure) command()  {}

// Part is what a job has by one Slurm job: its base job, or a companion.
type Part struct {
	ID    slurmctl.JobID
	Step  int // 1-based, that it came with
	Nodes []string
}

// Limit is a job's new time limit.
type Limit struct {
	Job   slurmctl.JobID
	Limit time.Duration
}

// TakenOut is a job that is taken out of a hold, with the other reservations that it asks for.
type TakenOut struct {
	Job  slurmctl.JobID
	Rest string
}

// Grown is what became of a [Grow]. Nothing of it is undone by an error: what is there is
// there.
type Grown struct {
	Expanders []slurmctl.JobID // that are there still and are not merged
	Opened    bool             // the hold was opened to the users
	HoldGone  bool             // and given up
	Stays     bool             // the companion stays in the hold, out of which it cannot be taken
	Parked    bool             // the expander was submitted parked
	Never     error            // Slurm merges nothing into the job: a companion was asked for in its place
	NotYet    string           // what the growth has to wait for
	Limit     string           // of the site that does not let it happen at present, in words
	After     []Part           // what the job has now; nil: as before
}

// Asked is what a job asked for.
type Asked struct {
	Request slurmctl.JobRequest
	User    *slurmctl.User
	UserErr error  // that it is not known
	Script  string // the node of its batch script, of a job that runs; "": not known
	// Used is for how long such a job has run without the time for which it was suspended; 0: not known.
	Used time.Duration
}

// Scripted is what a job's script asks for.
type Scripted struct {
	Request request.Request
	Asked   bool
	Err     error // that it asks for it wrongly
}
