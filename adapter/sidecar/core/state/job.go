package state

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// Job is an evolving job with what the core knows about it.
type Job struct {
	*row.Job
	Priority uint64    // planning priority; once the job runs, its priority in Slurm
	Mode     Behaviour // what its drive mode means on its site
	Reason   Reason    // why it is in its current state
	Note     string    // anything else to show about it

	Plan            []msg.PlannedStep    // one per step, or none without a plan; replaced, never modified
	Gains           Gains                // cached nodes that its plan brings
	PlacedIn        placedIn             // cached positions of its nodes in a pool
	Unfit           string               // why there is no plan
	Kept            *KeptBack            // its start or growth that a limit keeps back; nil: nothing is kept back
	Shunned         map[string]time.Time // nodes on which Slurm did not start it, and until when it avoids them
	KeptTimes       int                  // how often in a row it was kept back
	Held            []msg.Part           // what it holds now, the base job first; replaced, never modified
	Chain           []slurmctl.JobID
	Expanders       []slurmctl.JobID     // jobs that bring it nodes and are not merged yet
	Asked           *slurmctl.JobRequest // nil: not known yet
	GRES            []slurmctl.GRES      // generic resources that it has on every node
	LetGo           slurmctl.JobID       // the chain's job that was last released to start
	Readied         slurmctl.JobID       // the chain's job that Slurm starts once the job before it has ended: see readyLink
	Ending          bool                 // completing in Slurm
	Inferred        bool                 // found running: its step is a guess
	Gave            []string             // nodes that it gave back last, by GaveAt
	GaveAt          time.Time            //
	Release         []string             // nodes that the application would free at the next shrink
	Script          string               // host of its batch script, if it was found running and the host is known
	SuspendedBefore time.Duration        // how long it was suspended before it was found running
	Bound           string               // nodes that the user's request allows; "": any
	May             []string             // the same nodes by name
	Settled         bool                 // it has passed a whole cycle, in this or an earlier run of the sidecar
	Display         display              // its profile and plan for display
	Extend          bool                 // the plan is new and may end after the time limit
	Past            []row.Span
	events          Quota // events that its user caused by requests
	muted           muted

	HeldIdleRest int64     // node-milliseconds not yet added to HeldIdle
	PricedAt     time.Time // when HeldIdle was last saved

	RefusedIn    map[string]Refusal     // by partition
	RefusedAs    map[int]Refusal        // by alternative
	Options      []msg.PlannedOption    // what its alternatives would give, in the last plan
	ChoiceLogged bool                   // the event log has the chosen alternative
	Marked       map[slurmctl.JobID]int // the alternative, from 1, last written into the comment of each of its Slurm jobs
	Forbidden    map[string]Forbidden
	Accrued      time.Time // since when its age counts in Slurm; zero: it does not count
	AccrualKnown bool
	Considered   bool // it was eligible at least once
	Ineligible   bool // it was not eligible until recently

	Configuring   bool      // its nodes in Slurm are not up yet
	SuspendedFrom time.Time // since when it is suspended in Slurm; zero: it is not
	SuspendedAt   time.Time // time until which its steps were delayed because of that
	Short         string    // why its time limit cannot be as long as its plan, in words
	LastEnd       int64     // then the latest Unix second at which it ends; 0: its limit is long enough
	Recount       bool      // must read the total suspended time from Slurm

	Busy        bool      // an action is under way
	Touched     time.Time // when the last action ended, or was seen under way: older observations do not count
	RetryAt     time.Time // after a failed action
	HoldRetry   time.Time
	Failures    int       // in a row
	Failing     time.Time // since when actions fail, except those that failed because Slurm was away
	Denials     int       // growths that the sidecar gave up
	Denial      string    // why it gave up the last one
	Denied      string    // the same, until the script has received it
	Attempt     int       // number of the last expander or hold
	Warned      bool      // the current step's overrun was logged
	Overdue     int64     // Unix second of the planned end that the current step exceeded; 0: it did not
	NeedsReplan bool      // replan the next step: the promise lapsed
	Forgone     string    // why its coming steps have no promise, in words, in step ForgoneIn; "": it overran, or the reason is not known
	Deferred    []int     // near steps for which the shares do not allow a hold yet
	Unheld      *HeldBack // why the first of these steps has no hold; replaced, never modified
	UnheldTold  int       // the last step that had no hold
	UnheldSince bool      // some step has had no hold since the event about it
	Unplanned   string    // why the last attempt to replan its coming steps failed, in words

	Unwritten   bool        // its request was changed and not written into Slurm yet
	Undo        *Restorable // the request before the change, in case Slurm refuses it; nil: no call waits for it
	ForgoneIn   int
	Reached     int    // the step in which the request was changed, by its marker; 0: not known
	Rewrites    int    // how often the request was written again
	SeenComment string // the last comment that was searched for a marker

	Stiff      string    // why its size cannot change any more beyond its plan
	OfferAfter time.Time // when the next offer may be made
	Silences   int       // offers in a row that it did not answer, or declined
	ToldOffer  int64     // the last offer that it received

	Record   slurmctl.Job // the last squeue record of the base job (in a chain, of the current job)
	QueuedAt time.Time    // when the base job was last seen queued; zero: never
}

func (j *Job) BaseID() slurmctl.JobID { return slurmctl.JobID(j.SlurmID) }

// Runs reports whether the job has begun and not ended: its coming steps are promised.
func (j *Job) Runs() bool { return j.State == row.Running || j.State == row.Waiting }

func (j *Job) Last() bool { return j.Step == len(j.Profile) }

// Next returns the planned step after the current one, or nil after the last step or without a plan.
func (j *Job) Next() *msg.PlannedStep {
	if j.Step >= len(j.Plan) {
		return nil
	}
	return &j.Plan[j.Step]
}

// Nodes lists all nodes that the job holds, base job first.
func (j *Job) Nodes() []string {
	if len(j.Held) == 1 {
		return slices.Clone(j.Held[0].Nodes)
	}
	var all []string
	for _, p := range j.Held {
		all = append(all, p.Nodes...)
	}
	return all
}

// Planned lists all nodes of the current and coming steps.
func (j *Job) Planned() []string {
	seen := msg.Set{}
	var all []string
	for _, step := range j.Coming() {
		for _, n := range step.Nodes {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	return all
}

// Companions lists the Slurm jobs beside the base job whose nodes the job has.
func (j *Job) Companions() []msg.Part {
	if j.Mode.StepsAreJobs || len(j.Held) == 0 {
		return nil
	}
	return j.Held[1:]
}

// Coming returns the plan from the current step on.
func (j *Job) Coming() []msg.PlannedStep { return j.Plan[min(max(j.Step-1, 0), len(j.Plan)):] }

// NewestFirst lists the nodes that came later than the base job's, newest first:
// in companion mode they are the cheapest to give back.
func (j *Job) NewestFirst() []string {
	var all []string
	for i := len(j.Held) - 1; i > 0; i-- {
		all = append(all, j.Held[i].Nodes...)
	}
	return all
}

// Expected returns the second at which the current step ends if the application keeps to its profile.
func (j *Job) Expected() int64 {
	return j.StepStarted.Unix() + j.Profile[j.Step-1].Duration
}

// Due returns the time of the job's coming start or growth, or zero if there is none.
func (j *Job) Due() time.Time {
	switch {
	case j.State == row.Queued && len(j.Plan) > 0:
		return time.Unix(j.Plan[0].Start, 0)
	case j.State == row.Waiting && j.Next() != nil:
		return time.Unix(j.Next().Start, 0)
	}
	return time.Time{}
}

// Why returns every reason that the job shows for its current state.
func (c *Core) Why(j *Job) string {
	parts := []string{j.Reason.Words(), j.Note, ""}
	if j.Unheld != nil && j.Kept == nil {
		parts[2] = j.Unheld.Words(c)
	}
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), "; ")
}
