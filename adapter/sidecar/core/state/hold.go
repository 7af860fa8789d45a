package state

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Holding holds what is held for a job, what is not, and what that costs. Owner: hold.
type Holding struct {
	Gains        Gains     `codec:"-"` // cached nodes that its plan brings
	Deferred     []int     // near steps for which the shares do not allow a hold yet
	Unheld       *HeldBack // why the first of these steps has no hold; replaced, never modified
	UnheldTold   int       // the last step that had no hold
	UnheldSince  bool      // some step has had no hold since the event about it
	Attempt      int       // number of the last expander or hold
	HoldRetry    time.Time
	SurplusSince time.Time // when it got a hold too many, or last gave one up; zero if it has none too many
	HeldIdleRest int64     // node-milliseconds not yet added to HeldIdle
	PricedAt     time.Time // when HeldIdle was last saved
}

// Numbered records the number of an expander or hold that was found.
func (h *Holding) Numbered(n int) { h.Attempt = max(h.Attempt, n) }

// HeldBack holds why a hold is not taken.
type HeldBack struct {
	Step, Nodes       int
	Key               string // the configuration key of the limit; "" if the hold is taken
	Partition         string
	Most, Wants, Has  int64
	By                int64 // Unix second until which it will fit if nothing else is held meanwhile
	Soonest           int64 // Unix second before which it cannot fit unless another hold ends; 0 if not known
	NodeHours, Places bool  // unit of the figures, if they do not count reservations
}

// Words returns why nodes are not held, and until when.
func (b *HeldBack) Words(c *Core) string {
	figure := func(n int64) string {
		switch {
		case b.NodeHours:
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/3600), ".0") + " node-hours"
		case b.Places:
			return fmt.Sprintf("%d nodes", n)
		}
		return fmt.Sprintf("%d reservations", n)
	}
	text := fmt.Sprintf("the nodes of step %d (%d) are not held yet: %s allows %s", b.Step, b.Nodes, b.Key, figure(b.Most))
	if b.Partition != "" {
		text += " in partition " + b.Partition
	}
	if text += "; it takes " + figure(b.Wants); b.Has > 0 {
		text += " beside " + figure(b.Has)
	}
	return text + "; they will be by " + ClockText(c, time.Unix(b.By, 0))
}

// delays holds what is known about stock jobs that holds keep from starting.
type delays struct {
	Jobs       map[slurmctl.JobID]*HeldUp
	Distrusted map[uint32]time.Time // users, until when
	Seen       uint64               // digest of what the last look saw
	Again      time.Time            // the next look, even if nothing happens
	Fits       bool                 // some stock job fitted on the idle nodes in the last look

	Late     map[slurmctl.JobID]*row.Delay // pending stock jobs that are planned later because of holds
	Measured time.Time                     // when these were planned last

	Grown map[row.GrowDelayOf]row.GrowDelay // the ledger of growth on demand
}

// Copied returns a copy, for plans made outside the main loop.
func (d *delays) Copied() delays {
	n := *d
	n.Jobs, n.Distrusted = make(map[slurmctl.JobID]*HeldUp, len(d.Jobs)), maps.Clone(d.Distrusted)
	for id, h := range d.Jobs {
		n.Jobs[id] = msg.CopyOf(h)
	}
	n.Late, n.Grown = map[slurmctl.JobID]*row.Delay{}, maps.Clone(d.Grown)
	return n
}

// HeldUp describes a pending stock job that could have started without holds.
type HeldUp struct {
	UID   uint32    // its user
	Since time.Time // when it first could
	Free  time.Time // since when it could also start beside the holds; zero if it cannot
	Spent bool      // it could have started in that time, and did not
	Freed time.Time // when promises last lapsed for it; zero if never

	Behind bool // in that time, another stock job came before it

	Now   bool     // it is currently held up
	Nodes []string // that are kept for it
	From  int64    // Unix second from which they are kept
	End   int64    // Unix second until which they are kept: the start plus the job's time limit
}

// WaitsFor records whether something currently keeps the job from starting.
func (h *HeldUp) WaitsFor(something bool, now time.Time) {
	switch {
	case something:
		h.Free = time.Time{}
	case h.Free.IsZero():
		h.Free = now
	}
}

// InTurn records whether no other stock job comes before the job. If another one did while the job did not start, that
// says nothing about the job, and it has its budget again.
func (h *HeldUp) InTurn(first bool) {
	if h.Spent && h.Behind && first && h.Freed.IsZero() {
		h.Spent, h.Free = false, time.Time{}
	}
	if !h.Spent {
		h.Behind = !first
	}
}

// OwnHold holds the name of one of our reservations, and its parsed form.
type OwnHold struct {
	Name string
	Own  OwnName
}

// Intrusion describes a job in a hold of another job.
type Intrusion struct {
	Job  *Job // owner of the hold, nil if it is not known any more
	Step int  // of the hold
	Text string
}

// Opening is a time during which a hold is open to the user of a job whose process submits an expander.
type Opening struct {
	Job          *Job
	Hold         string
	Nodes        []string
	Since, Until time.Time // Until is zero while it is open; then, what began before that slipped in
}

// OpenedFor returns the job of a number if a hold of it is or was lately open to its user, or nil.
func (h *Holds) OpenedFor(id slurmctl.JobID) *Job {
	for _, o := range h.Opened {
		if o.Job.BaseID() == id {
			return o.Job
		}
	}
	return nil
}

// Keeping holds how many nodes a hold keeps from others.
type Keeping struct {
	Job   *Job
	Row   *Booked
	Nodes int
}

// prices holds what the last poll showed about such nodes.
type prices struct {
	Kept  []Keeping
	Nodes int       // total
	Since time.Time // when counting starts
}

// IdleHeld returns the node-seconds counted for a job.
func (j *Job) IdleHeld() int64 { return j.HeldIdle + j.HeldIdleRest/1000 }
