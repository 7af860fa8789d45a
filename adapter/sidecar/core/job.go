package core

import (
	"slices"
	"strings"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// job is an evolving job with what is known of it at present.
type job struct {
	*row.Job
	priority uint64    // by which it is planned; once it runs, Slurm's
	mode     behaviour // what its drive mode means on its site
	reason   reason    // why it is where it is
	note     string    // and what else is to be known of it

	plan            []plannedStep        // one a step, or none while there is no plan; it is never changed, but replaced
	gains           gains                // what it brings
	placedIn        placedIn             // where its nodes are
	unfit           string               // why there is none
	kept            *keptBack            // its start or growth is, by a limit; nil: it is not
	shunned         map[string]time.Time // nodes on which Slurm did not start it, and until when they are left alone
	keptTimes       int                  // in a row
	held            []Part               // what it holds now, the base job first; likewise
	chain           []slurmctl.JobID
	expanders       []slurmctl.JobID     // that bring it nodes and are not merged yet
	asked           *slurmctl.JobRequest // nil: not known yet
	gres            []slurmctl.GRES      // that it has on every node
	letGo           slurmctl.JobID       // the chain's job that was last told to start
	readied         slurmctl.JobID       // the chain's job that Slurm starts once the one before has ended: see readyLink
	ending          bool                 // completing in Slurm
	inferred        bool                 // it was found running: its step is a guess
	gave            []string             // nodes that it gave back last, by gaveAt
	gaveAt          time.Time            //
	release         []string             // nodes that the application would free at the next shrink
	script          string               // where its batch script runs, if it was found running and that is known
	suspendedBefore time.Duration        // for how long it was suspended by then, likewise
	bound           string               // the nodes that it may have, as the user listed them; "": any
	may             []string             // and by name
	settled         bool                 // it has come through a whole cycle, in this life of the sidecar or before
	display         display              // of its profile and plan
	extend          bool                 // the plan is new and may end after the time limit
	past            []row.Span
	events          quota // that its user has caused by asking
	muted           muted

	heldIdleRest int64     // to be added to HeldIdle, node-milliseconds
	pricedAt     time.Time // when it was last written with that

	refusedIn    map[string]refusal     // partitions
	refusedAs    map[int]refusal        // alternatives
	options      []PlannedOption        // what its alternatives would give, by the last plan
	choiceLogged bool                   // the event log has what was chosen
	marked       map[slurmctl.JobID]int // the alternative, from 1, that the comment of each of its Slurm jobs was last given
	forbidden    map[string]forbidden
	accrued      time.Time // since when Slurm counts its age; zero: it does not
	accrualKnown bool
	considered   bool // it was eligible once
	ineligible   bool // until lately

	configuring   bool      // Slurm has given it nodes that are not up yet
	suspendedFrom time.Time // since when Slurm has it suspended; zero: it has not
	suspendedAt   time.Time // up to when its steps were put off for that
	short         string    // that its time limit cannot be as long as its plan, in words
	lastEnd       int64     // Unix second at which it ends at the latest then; 0: its limit is long enough
	recount       bool      // Slurm is to be asked for how long it was suspended in all

	busy        bool      // an action is under way
	touched     time.Time // when the last one ended, or was seen to be under way: older observations do not count
	retryAt     time.Time // after a failed action
	holdRetry   time.Time
	failures    int       // in a row
	failing     time.Time // since when actions fail, those apart for which Slurm was away
	denials     int       // growths that were given up
	denial      string    // why the last one was
	denied      string    // the same, as long as the script was not told
	attempt     int       // of the last expander or hold
	warned      bool      // of the present step's overrun
	overdue     int64     // Unix second of the planned end that the present step has outlasted; 0: it has not
	needsReplan bool      // its promise had lapsed: what comes next is planned anew
	forgone     string    // why nothing is promised to it for its coming steps, in words, in step forgoneIn; "": it overran, or is not known
	deferred    []int     // steps that are near, and for which the shares allow no hold yet
	unheld      *heldBack // why not, of the first of them; it is never changed, but replaced
	unheldTold  int       // the last step that was not held
	unheldSince bool      // some step has not been held since the last event of that
	unplanned   string    // why its coming steps could not be planned anew when that was last tried, in words

	unwritten   bool        // its request was changed, and Slurm is still to be told
	undo        *restorable // what it was before, should Slurm refuse the change; nil: no call waits for it
	forgoneIn   int
	reached     int    // the step in which it was when that was changed, as its marker says; 0: not known
	rewrites    int    // how often it was written again
	seenComment string // the last one that was looked through for it

	stiff      string    // why its size cannot be changed any more beside its plan
	offerAfter time.Time // when it may be offered something again
	silences   int       // offers in a row that it did not answer, or declined
	toldOffer  int64     // the last one that it was told

	record   slurmctl.Job // the last squeue record of the base job (a chain's present one)
	queuedAt time.Time    // when that was last seen queued; zero: never
}

// plannedStep is a step of a scheduled profile in absolute time.
type plannedStep struct {
	start, end int64 // Unix seconds
	nodes      []string
	at         []int // where the nodes were in the snapshot that it was planned for; nil: not known
}

func (j *job) id() slurmctl.JobID { return slurmctl.JobID(j.SlurmID) }

// runs reports whether the job has begun and not ended: its future is promised.
func (j *job) runs() bool { return j.State == row.Running || j.State == row.Waiting }

func (j *job) last() bool { return j.Step == len(j.Profile) }

// next is the planned step after the present one, nil after the last or without
// a plan.
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

// planned lists all nodes of the present and coming steps.
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

// preferred lists the nodes on which its coming steps are to be, where they can: those that it has
// beyond its plan, and those of its plan so far. Where it has enough for its next step with them, it
// needs no others for that: else it would have more than it may until it has given as many back.
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

// coming is the plan from the present step on.
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

// expected is the second at which the present step ends if the application keeps
// to its profile.
func (j *job) expected() int64 {
	return j.StepStarted.Unix() + j.Profile[j.Step-1].Duration
}

// due is when the job's coming start or growth is to be done; zero if none is.
func (j *job) due() time.Time {
	switch {
	case j.State == row.Queued && len(j.plan) > 0:
		return time.Unix(j.plan[0].start, 0)
	case j.State == row.Waiting && j.next() != nil:
		return time.Unix(j.next().start, 0)
	}
	return time.Time{}
}

// reach is how many seconds away the job's time limit in Slurm is.
func (j *job) reach(now int64) int64 {
	if j.record.EndTime.IsZero() || j.record.TimeLimit == slurmctl.Unlimited {
		return seconds(j.record.TimeLimit)
	}
	return max(j.record.EndTime.Unix()-now, 0)
}

// why returns everything that the job shows of why it is where it is.
func (c *Core) why(j *job) string {
	parts := []string{j.reason.words(), j.note, ""}
	if j.unheld != nil && j.kept == nil {
		parts[2] = j.unheld.words(c)
	}
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), "; ")
}
