package row

import (
	"cmp"
	"time"
)

// Hold is a row of the ledger of holds: a reservation that kept nodes for a step of a job.
type Hold struct {
	ID       int64 // ascending
	Job      int64 // row of the job
	Step     int
	Name     string    // of the reservation
	Nodes    int       // most at a time
	NodeList string    // as it was last; cut to MostListed bytes
	Planned  time.Time // start of the reservation, as planned last
	Made     time.Time // of one that Slurm refused to make: when it was asked first
	Changes  int       // how often Slurm was asked to change it, or refused again to make it
	Changed  time.Time // the last time
	Begun    time.Time // when the job got the nodes
	Ended    time.Time // when it was given up; zero while it is there
	Cause    string    // why, in one of the words below
	By       string    // operator who cancelled it; "" for the sidecar
	Held     int64     // node-milliseconds
	Idle     int64     // of these, of idle nodes that a waiting job could have used
	Counted  time.Time // until when both were counted
}

// MostListed bounds the list of nodes in a row of the ledger.
const MostListed = 500

// Why a hold or a promise ended, in the words of the ledger.
const (
	CauseKept       = "kept" // the job got the nodes
	CauseReplanned  = "replanned"
	CauseNotNeeded  = "not needed" // the job had grown before, or was changed
	CauseNotMade    = "not made"   // Slurm refused to make it; also while the sidecar tries again
	CauseOverrun    = "overrun"    // the step before lasted too long
	CauseBudget     = "delay budget"
	CauseCancelled  = "cancelled" // by an operator
	CauseReleased   = "released"  // an operator had the sidecar drained, or everything given up
	CauseYielded    = "another job first"
	CauseShares     = "shares"    // the limits on what is held
	CauseKeptBack   = "kept back" // by a limit of Slurm
	CauseRefused    = "refused"   // Slurm refused to change it
	CauseGone       = "gone"      // it was not the sidecar that removed it
	CauseJobEnded   = "job ended"
	CauseRequeued   = "requeued"
	CauseNodeFailed = "node failed"
	CauseOffer      = "offer over" // nodes that were offered to a malleable job
	CauseFewer      = "fewer nodes"
	CauseUnknown    = "unknown"
)

// Promise is a row of the ledger of promises: a growth that was planned for a running job, once it is decided.
type Promise struct {
	Job      int64
	Step     int // that the growth leads to
	From, To int // nodes
	Got      int
	At       time.Time // promised
	Asked    time.Time // when the application ended the step before; zero if it did not
	Decided  time.Time // when the nodes came, or the job ended without them
	Lapsed   bool
	Outcome  string // see below; "" while it is open
	Cause    string // why it was not kept, in a word of the ledger or as the kind of an event
	By       string // operator who cancelled it
}

// The outcomes of a promise.
const (
	PromiseKept       = "kept"
	PromiseLate       = "late"        // by PromiseLateness or more
	PromiseBroken     = "broken"      // it had lapsed, or fewer nodes came
	PromiseNotReached = "not reached" // the job ended before
)

// PromiseLateness is how late the nodes of a promise are that was not kept: as the alert rules have it.
const PromiseLateness = 10 * time.Second

// Late returns how much later than promised and asked for the nodes came.
func (p Promise) Late() time.Duration {
	due := p.At
	if p.Asked.After(due) {
		due = p.Asked
	}
	if p.At.IsZero() || p.Outcome == PromiseNotReached {
		return 0
	}
	return max(p.Decided.Sub(due), 0)
}

// Hindered records what kept the growth from its nodes: the first cause counts.
func (p *Promise) Hindered(cause string) {
	if p.Cause == "" {
		p.Cause = cause
	}
}

// NotReached decides a promise whose job ended before.
func (p *Promise) NotReached(at time.Time) {
	p.Decided, p.Outcome, p.Cause = at, PromiseNotReached, CauseJobEnded
}

// Came decides a promise whose nodes came at a time.
func (p *Promise) Came(at time.Time, got int) {
	p.Decided, p.Got = at, got
	switch late := p.Late() >= PromiseLateness; {
	case p.Lapsed:
		p.Outcome = PromiseBroken
	case got < p.To:
		p.Outcome, p.Cause = PromiseBroken, CauseFewer
	case late:
		p.Outcome = PromiseLate
	default:
		p.Outcome, p.Cause = PromiseKept, ""
		return
	}
	if p.Cause == "" {
		p.Cause = CauseUnknown
	}
}

// Delay is a row of the ledger of delays: a stock job that would have started sooner without holds.
type Delay struct {
	Stock
	Since   time.Time // when it was first seen to be delayed
	Could   time.Time // when it would start without holds, as planned when the delay was longest
	Seconds int64     // how long the holds delay it: in the plan while it waits, otherwise at most what it waited
	Hold    string    // the first hold in its way
	Job     int64     // row of that hold's job; 0 if not known
	Settled time.Time // when it started or left; zero while it waits
}

// GrowDelay is a row of the ledger of growth on demand (grow_delay). A job's row has the seconds that growths of other
// jobs made it later while it waits. A user's row has the node-seconds that the growths of the user's jobs took
// from waiting jobs. A row with an amount of 0 is deleted.
type GrowDelay struct {
	GrowDelayOf
	Since  time.Time // when the job was submitted, by Slurm's clock, or when the user's last such growth was granted
	Amount int64
}

// GrowDelayOf says whose row it is: that of a Slurm job, or of a user.
type GrowDelayOf struct {
	User bool
	ID   uint32
}

// Compare orders jobs by their IDs, then users by theirs.
func (a GrowDelayOf) Compare(b GrowDelayOf) int {
	if a.User == b.User {
		return cmp.Compare(a.ID, b.ID)
	} else if b.User {
		return -1
	}
	return 1
}

// Stock says which stock job it is, and whose.
type Stock struct {
	SlurmID   uint32
	Submitted time.Time
	User      string
	UID       uint32
	Account   string
	QOS       string
	Partition string
}
