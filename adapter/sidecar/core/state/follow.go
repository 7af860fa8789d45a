package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Sight holds what Slurm last showed of a job. Owner: follow.
type Sight struct {
	Record      slurmctl.Job     // the last squeue record of the base job (in a chain, of the current job)
	QueuedAt    time.Time        // when the base job was last seen queued; zero: never
	Configuring bool             // its nodes in Slurm are not up yet
	Ending      bool             // completing in Slurm
	Held        []msg.Part       // what it holds now, the base job first; replaced, never modified
	Expanders   []slurmctl.JobID // jobs that bring it nodes and are not merged yet
	Left        []msg.Left       // nodes that left it lately, and that Slurm may show as failed only later
	Past        []row.Span
	SeenComment string // the last comment that was searched for a marker
	Rewrites    int    // how often its changed request was missing there, and written again
}

// ExpandedBy records the jobs that bring the job nodes.
func (v *Sight) ExpandedBy(ids []slurmctl.JobID) { v.Expanders = ids }

// StillQueued records that a poll shows what the one before showed.
func (v *Sight) StillQueued(before, now time.Time) {
	if v.QueuedAt.Equal(before) {
		v.QueuedAt = now
	}
}

// Cancelled records whether a job that was cancelled ends.
func (v *Sight) Cancelled(done bool) { v.Ending = done }

// MovedTo records the reservations that the job refers to now.
func (v *Sight) MovedTo(reservations string) { v.Record.Reservation = reservations }

// Excludes records the nodes that the job must not have.
func (v *Sight) Excludes(nodes []string) { v.Record.ExcNodes = nodes }

// Nodes lists all nodes that the job holds, base job first.
func (v *Sight) Nodes() []string {
	if len(v.Held) == 1 {
		return slices.Clone(v.Held[0].Nodes)
	}
	var all []string
	for _, p := range v.Held {
		all = append(all, p.Nodes...)
	}
	return all
}

// NewestFirst lists the nodes that came later than the base job's, newest first:
// in companion mode they are the cheapest to give back.
func (v *Sight) NewestFirst() []string {
	var all []string
	for i := len(v.Held) - 1; i > 0; i-- {
		all = append(all, v.Held[i].Nodes...)
	}
	return all
}

// Suspension holds since when Slurm has suspended a job. Owner: follow.
type Suspension struct {
	SuspendedFrom time.Time // since when it is suspended in Slurm; zero: it is not
	SuspendedAt   time.Time // time until which its steps were delayed because of that
	Recount       bool      // must read the total suspended time from Slurm
}

// Promise holds whether a running job keeps to its plan, and its promise for coming steps. Owner: refit.
type Promise struct {
	Overdue     int64  // Unix second of the planned end that the current step exceeded; 0: it did not
	Warned      bool   // the current step's overrun was logged
	Signalled   bool   // the job was signalled because of it
	NeedsReplan bool   // replan the next step: the promise lapsed
	Forgone     string // why its coming steps have no promise, in words, in step ForgoneIn; "": it overran, or the reason is not known
	ForgoneIn   int
	YieldedTo   slurmctl.JobID // job that is planned first in the current step, though this one had a promise; 0: none
	Unplanned   string         // why the last attempt to replan its coming steps failed, in words
	Open        row.Promise    // of its next growth, as far as it is known
}

// Warn records that the current step's overrun was logged.
func (p *Promise) Warn() { p.Warned = true }

// Lapsed reports whether the job is promised nothing except the nodes that it has.
func (j *Job) Lapsed() bool {
	return j.State == row.Running && !j.Last() && j.Step > 0 && len(j.Plan) == j.Step
}

// Signal records that the job is signalled because of its step's overrun.
func (p *Promise) Signal() { p.Signalled = true }

// WarnAgain records that the job could not be signalled.
func (p *Promise) WarnAgain() { p.Signalled = false }

// More nodes do not help against a limit. If an account, QOS, or partition allows no more at present, the job
// waits with the nodes that it has, and holds no nodes that other jobs could use. The sidecar tries again when
// the limit may have room, and replans the job then.

// KeptBack describes a start or growth that Slurm does not allow at present.
type KeptBack struct {
	Limit  string // squeue's reason, or the words of a refusal
	Text   string // what evosqueue says
	To     int    // number of nodes to grow to; 0: it is a start
	Again  time.Time
	Look   bool      // read the limit's figures before the next attempt
	Fresh  time.Time // the figures must be read at this time or later
	Looked time.Time // when they were last read
	// GivenUp reports that the cause is not a limit: only a request of the script starts another attempt.
	GivenUp bool
	Usage   Usage // highest usage since then of the jobs that the limit may count
}

// Say sets what evosqueue says.
func (k *KeptBack) Say(limit string) {
	k.Text = "Slurm did not start it: " + limit
	if k.To > 0 {
		k.Text = fmt.Sprintf("the growth to %d nodes waits for %s", k.To, limit)
	}
}

// Usage holds what some jobs use in Slurm.
type Usage struct{ Jobs, Nodes, CPUs int }

func (u Usage) Less(than Usage) bool {
	return u.Jobs < than.Jobs || u.Nodes < than.Nodes || u.CPUs < than.CPUs
}

func (u Usage) Most(other Usage) Usage {
	return Usage{max(u.Jobs, other.Jobs), max(u.Nodes, other.Nodes), max(u.CPUs, other.CPUs)}
}

// StartedPart is one of a job's Slurm jobs and when it started.
type StartedPart struct {
	Job     slurmctl.JobID
	Started time.Time
}
