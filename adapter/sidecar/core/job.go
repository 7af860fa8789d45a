package core

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// job is an evolving job with what the core knows about it.
type job struct {
	*row.Job
	priority uint64    // planning priority; once the job runs, its priority in Slurm
	mode     behaviour // what its drive mode means on its site
	reason   reason    // why it is in its current state
	note     string    // anything else to show about it

	plan            []plannedStep        // one per step, or none without a plan; replaced, never modified
	gains           gains                // cached nodes that its plan brings
	placedIn        placedIn             // cached positions of its nodes in a pool
	unfit           string               // why there is no plan
	kept            *keptBack            // its start or growth that a limit keeps back; nil: nothing is kept back
	shunned         map[string]time.Time // nodes on which Slurm did not start it, and until when it avoids them
	keptTimes       int                  // how often in a row it was kept back
	held            []Part               // what it holds now, the base job first; replaced, never modified
	chain           []slurmctl.JobID
	expanders       []slurmctl.JobID     // jobs that bring it nodes and are not merged yet
	asked           *slurmctl.JobRequest // nil: not known yet
	gres            []slurmctl.GRES      // generic resources that it has on every node
	letGo           slurmctl.JobID       // the chain's job that was last released to start
	readied         slurmctl.JobID       // the chain's job that Slurm starts once the job before it has ended: see readyLink
	ending          bool                 // completing in Slurm
	inferred        bool                 // found running: its step is a guess
	gave            []string             // nodes that it gave back last, by gaveAt
	gaveAt          time.Time            //
	release         []string             // nodes that the application would free at the next shrink
	script          string               // host of its batch script, if it was found running and the host is known
	suspendedBefore time.Duration        // how long it was suspended before it was found running
	bound           string               // nodes that the user's request allows; "": any
	may             []string             // the same nodes by name
	settled         bool                 // it has passed a whole cycle, in this or an earlier run of the sidecar
	display         display              // its profile and plan for display
	extend          bool                 // the plan is new and may end after the time limit
	past            []row.Span
	events          quota // events that its user caused by requests
	muted           muted

	heldIdleRest int64     // node-milliseconds not yet added to HeldIdle
	pricedAt     time.Time // when HeldIdle was last saved

	refusedIn    map[string]refusal     // by partition
	refusedAs    map[int]refusal        // by alternative
	options      []PlannedOption        // what its alternatives would give, in the last plan
	choiceLogged bool                   // the event log has the chosen alternative
	marked       map[slurmctl.JobID]int // the alternative, from 1, last written into the comment of each of its Slurm jobs
	forbidden    map[string]forbidden
	accrued      time.Time // since when its age counts in Slurm; zero: it does not count
	accrualKnown bool
	considered   bool // it was eligible at least once
	ineligible   bool // it was not eligible until recently

	configuring   bool      // its nodes in Slurm are not up yet
	suspendedFrom time.Time // since when it is suspended in Slurm; zero: it is not
	suspendedAt   time.Time // time until which its steps were delayed because of that
	short         string    // why its time limit cannot be as long as its plan, in words
	lastEnd       int64     // then the latest Unix second at which it ends; 0: its limit is long enough
	recount       bool      // must read the total suspended time from Slurm

	busy        bool      // an action is under way
	touched     time.Time // when the last action ended, or was seen under way: older observations do not count
	retryAt     time.Time // after a failed action
	holdRetry   time.Time
	failures    int       // in a row
	failing     time.Time // since when actions fail, except those that failed because Slurm was away
	denials     int       // growths that the sidecar gave up
	denial      string    // why it gave up the last one
	denied      string    // the same, until the script has received it
	attempt     int       // number of the last expander or hold
	warned      bool      // the current step's overrun was logged
	overdue     int64     // Unix second of the planned end that the current step exceeded; 0: it did not
	needsReplan bool      // replan the next step: the promise lapsed
	forgone     string    // why its coming steps have no promise, in words, in step forgoneIn; "": it overran, or the reason is not known
	deferred    []int     // near steps for which the shares do not allow a hold yet
	unheld      *heldBack // why the first of these steps has no hold; replaced, never modified
	unheldTold  int       // the last step that had no hold
	unheldSince bool      // some step has had no hold since the event about it
	unplanned   string    // why the last attempt to replan its coming steps failed, in words

	unwritten   bool        // its request was changed and not written into Slurm yet
	undo        *restorable // the request before the change, in case Slurm refuses it; nil: no call waits for it
	forgoneIn   int
	reached     int    // the step in which the request was changed, by its marker; 0: not known
	rewrites    int    // how often the request was written again
	seenComment string // the last comment that was searched for a marker

	stiff      string    // why its size cannot change any more beyond its plan
	offerAfter time.Time // when the next offer may be made
	silences   int       // offers in a row that it did not answer, or declined
	toldOffer  int64     // the last offer that it received

	record   slurmctl.Job // the last squeue record of the base job (in a chain, of the current job)
	queuedAt time.Time    // when the base job was last seen queued; zero: never
}

// plannedStep holds a step of a scheduled profile in absolute time.
type plannedStep struct {
	start, end int64 // Unix seconds
	nodes      []string
	at         []int // positions of the nodes in the snapshot for which they were planned; nil: not known
}

func (j *job) id() slurmctl.JobID { return slurmctl.JobID(j.SlurmID) }

// runs reports whether the job has begun and not ended: its coming steps are promised.
func (j *job) runs() bool { return j.State == row.Running || j.State == row.Waiting }

func (j *job) last() bool { return j.Step == len(j.Profile) }

// next returns the planned step after the current one, or nil after the last step or without a plan.
func (j *job) next() *plannedStep {
	if j.Step >= len(j.plan) {
		return nil
	}
	return &j.plan[j.Step]
}

// nodes lists all nodes that the job holds, base job first.
func (j *job) nodes() []string {
	if len(j.held) == 1 {
		return slices.Clone(j.held[0].Nodes)
	}
	var all []string
	for _, p := range j.held {
		all = append(all, p.Nodes...)
	}
	return all
}

// planned lists all nodes of the current and coming steps.
func (j *job) planned() []string {
	seen := set{}
	var all []string
	for _, step := range j.coming() {
		for _, n := range step.nodes {
			if !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	return all
}

// preferred lists the nodes on which its coming steps should run: first the nodes that it has beyond its plan,
// then the nodes of its plan so far. If these nodes are enough for its next step, that step needs no other
// ones. With others, the job would have more than it may until it has given as many back.
func (j *job) preferred() []string {
	lent, planned := j.lent(), j.planned()
	if next := j.next(); next != nil && len(lent) > 0 && j.State == row.Waiting {
		if have := j.nodes(); len(have) >= len(next.nodes) {
			planned = Without(planned, Without(next.nodes, have))
		}
	}
	return append(lent, Without(planned, lent)...)
}

// companions lists the Slurm jobs beside the base job whose nodes the job has.
func (j *job) companions() []Part {
	if j.mode.stepsAreJobs || len(j.held) == 0 {
		return nil
	}
	return j.held[1:]
}

// coming returns the plan from the current step on.
func (j *job) coming() []plannedStep { return j.plan[min(max(j.Step-1, 0), len(j.plan)):] }

// newestFirst lists the nodes that came later than the base job's, newest first:
// in companion mode they are the cheapest to give back.
func (j *job) newestFirst() []string {
	var all []string
	for i := len(j.held) - 1; i > 0; i-- {
		all = append(all, j.held[i].Nodes...)
	}
	return all
}

// expected returns the second at which the current step ends if the application keeps to its profile.
func (j *job) expected() int64 {
	return j.StepStarted.Unix() + j.Profile[j.Step-1].Duration
}

// due returns the time of the job's coming start or growth, or zero if there is none.
func (j *job) due() time.Time {
	switch {
	case j.State == row.Queued && len(j.plan) > 0:
		return time.Unix(j.plan[0].start, 0)
	case j.State == row.Waiting && j.next() != nil:
		return time.Unix(j.next().start, 0)
	}
	return time.Time{}
}

// reach returns how many seconds away the job's time limit in Slurm is.
func (j *job) reach(now int64) int64 {
	if j.record.EndTime.IsZero() || j.record.TimeLimit == slurmctl.Unlimited {
		return seconds(j.record.TimeLimit)
	}
	return max(j.record.EndTime.Unix()-now, 0)
}

// why returns every reason that the job shows for its current state.
func (c *Core) why(j *job) string {
	parts := []string{j.reason.words(), j.note, ""}
	if j.unheld != nil && j.kept == nil {
		parts[2] = j.unheld.words(c)
	}
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), "; ")
}
