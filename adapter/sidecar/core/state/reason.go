package state

import (
	"fmt"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"
	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

// Waits holds why a job waits. Owner: state.
type Waits struct {
	Cause     Reason    // the last cause that a decision found, without what Job.Reason adds
	Note      string    // anything else to show about it
	Kept      *KeptBack // its start or growth that a limit keeps back; nil: nothing is kept back
	KeptTimes int       // how often in a row it was kept back
}

// WaitsFor records what the job waits for. The last cause of a step counts.
func (w *Waits) WaitsFor(cause Reason) { w.Cause = cause }

// GoesOn records that nothing keeps the job from going on as planned.
func (w *Waits) GoesOn() { w.Cause = Reason{} }

// KeepBack records what keeps the job's start or growth back.
func (w *Waits) KeepBack(k *KeptBack) { w.Kept, w.Cause = k, Reason{} }

// KeepBackAgain does what KeepBack does, for something that may keep the job back again and again.
func (w *Waits) KeepBackAgain(k *KeptBack) {
	w.KeptTimes++
	w.KeepBack(k)
}

// LetTry records that the start or growth may be tried again.
func (w *Waits) LetTry() { w.Kept = nil }

// Remark records what else users should know.
func (w *Waits) Remark(text string) { w.Note = text }

// Reason returns why the job is in its current state. What follows from other facts is derived here, and not recorded.
// An action under way has its own cause.
func (j *Job) Reason() Reason {
	r := j.Cause
	switch {
	case j.Ending:
		return Because(whyCompleting)
	case j.Configuring:
		return Because(WhyConfiguring)
	case j.Lapsed() && (!j.Busy || r.Kind == WhyNothing):
		return Saying(whyLapsed, lapsed(j))
	case j.Kept != nil && (!j.Busy || r.Kind == WhyNothing):
		return Saying(whyKeptBack, j.Kept.Text)
	case j.State == row.Running && j.Warned && r.Kind == WhyNothing:
		return Because(whyOverruns)
	case r.Kind == WhyNotPlanned:
		r.Text = j.Unfit
	}
	return r
}

// lapsed describes a lapsed promise. After a restart the reason is not known until a step overruns.
func lapsed(j *Job) string {
	text := "nodes are no longer held for its coming steps; it is planned again when it calls next"
	if j.Mode.StepsAreJobs {
		text = "nodes are no longer held for its coming steps; they are planned again when it ends"
	}
	switch {
	case j.Forgone != "" && j.ForgoneIn == j.Step:
		return j.Forgone + "; " + text
	case j.Warned:
		return "the step lasts longer than its profile says; " + text
	}
	return text
}

// Reason holds why a job is in its current state: a kind, and the values for the kind's words. It is a plain
// value; words makes the sentence that evosqueue shows.
type Reason struct {
	Kind  ReasonKind
	Job   uint32    // another job that comes first
	Nodes int       // number of nodes that it gets, gives back, or waits for
	Tries int       // how often an action has failed in a row
	At    time.Time // when it continues, by Slurm's clock
	What  string    // an action, in words
	Text  string    // what Slurm, a limit, or the planner says
}

// ReasonKind names one cause for a job's current state.
type ReasonKind uint8

const (
	WhyNothing ReasonKind = iota // the job goes on as planned

	// Something is not known yet.
	WhyRequestUnread       // what the job asks for
	WhyEarlierUnread       // what a job before it asks for
	WhyLimitsUnread        // the limits of its partitions
	WhyLicensesUnread      // how many licences the cluster has
	WhyPartitionUnread     // the limits of the partition that it grows in
	whyDatabaseNotWritable // nothing happens before it is written to the database

	// The plan.
	WhyNotPlanned      // text says why it has no plan
	WhyNotReplanned    // text says why its coming steps have none; job began before it
	WhyWaitsForLower   // text names the job of lower priority whose end it waits for
	WhyClaimsConflict  // all jobs with claims could end up waiting for each other
	WhyPlannedFor      // it waits for nodes that are planned for a time; text says why they were planned again
	WhyPromisedAway    // its nodes were promised to job in the meantime
	WhyLicensesAwaited // text says which licences are in use
	WhyFewSwitches     // it waits for nodes on few switches until a time; nodes holds how many switches
	WhyAimed           // text says what its preference (--prefer-start, and so on) does
	WhyIdleAwaited     // text says why a best-effort job does not start
	WhyRoomUnder       // there may be room again under the limit in text
	WhyNotStarted      // Slurm did not start it on idle nodes, for the reason in text
	whyLapsed          // nodes are no longer held for its coming steps; text says why
	whyOverruns        // its step lasts longer than its profile says

	// Nodes and holds.
	WhyHeldSoon        // its nodes will be held soon
	WhyHoldMoves       // its hold is being moved
	WhyReservedSoon    // others have reserved its nodes for too soon
	WhyNodesAwaited    // text says what its nodes wait for
	WhySwitchingOn     // the sidecar is switching its nodes on
	WhyConfiguring     // Slurm is switching its nodes on
	WhyExpanderUnready // text says what the expander waits for
	WhyExpanderQueued  // text says why the expander has not begun
	WhyNoProcess       // no process of the job can submit the expander at present

	// Actions.
	WhyUserBusy   // too many actions of its user are under way
	WhyGrows      // it is getting nodes
	WhyShrinks    // it is giving nodes back
	WhyReshaped   // it is getting the nodes of the chosen alternative
	WhyReleased   // it was released in Slurm and is about to run
	whyKeptBack   // text says which limit keeps it back
	WhyFailed     // what failed, with the error in text; after several failures it is retried at a time
	whyCompleting // it is completing
	WhySuspended  // it is suspended in Slurm since a time
)

// fixedWords holds the words of the kinds without values.
var fixedWords = map[ReasonKind]string{
	WhyRequestUnread:       "its request is being read",
	WhyLimitsUnread:        "the limits of its partitions are being read",
	WhyLicensesUnread:      "the licences of the cluster are being read",
	WhyPartitionUnread:     "the limits of its partition are being read",
	whyDatabaseNotWritable: "waits for the sidecar's database, which cannot be written at present",
	WhyClaimsConflict:      Unsafe,
	whyOverruns:            "the step lasts longer than its profile says",
	WhyHeldSoon:            "its nodes are being held",
	WhyHoldMoves:           "its hold is being moved",
	WhyReservedSoon:        "its nodes are reserved for others in less than a minute, which is Slurm's shortest time limit",
	WhySwitchingOn:         "its nodes are being switched on",
	WhyConfiguring:         "Slurm is switching its nodes on",
	WhyNoProcess:           "waits for a process of the job that can submit what brings its nodes (evosctl next)",
	WhyUserBusy:            "waits for other jobs of its user that are being changed",
	WhyReshaped:            "gets the nodes of the chosen alternative",
	WhyReleased:            "let go, about to run",
	whyCompleting:          "completing",
}

// Because returns a reason of a kind without values.
func Because(kind ReasonKind) Reason { return Reason{Kind: kind} }

// Saying returns a reason of a kind with the caller's words.
func Saying(kind ReasonKind, text string) Reason { return Reason{Kind: kind, Text: text} }

// Words returns the sentence that users read; "": there is nothing to say.
func (r Reason) Words() string {
	if fixed, ok := fixedWords[r.Kind]; ok {
		return fixed
	}
	switch r.Kind {
	case WhyEarlierUnread:
		return fmt.Sprintf("waits for job %d, whose request is being read", r.Job)
	case WhyNotReplanned:
		return r.notReplanned()
	case WhyPlannedFor:
		return r.plannedFor()
	case WhyPromisedAway:
		return fmt.Sprintf("is planned again: its nodes were promised to job %d", r.Job)
	case WhyFewSwitches:
		return fmt.Sprintf("waits for nodes on at most %d leaf switches, until %s at the latest", r.Nodes, r.clock())
	case WhyRoomUnder:
		return "is planned again: there may be room under " + r.Text
	case WhyNotStarted:
		return "is planned again: Slurm did not start it on idle nodes (" + r.Text + ")"
	case WhyGrows:
		return fmt.Sprintf("gets %d nodes", r.Nodes)
	case WhyShrinks:
		return fmt.Sprintf("gives %d nodes back", r.Nodes)
	case WhyFailed:
		return r.failed()
	case WhySuspended:
		return "Slurm has suspended it since " + r.clock()
	}
	return r.Text
}

func (r Reason) clock() string { return r.At.Local().Format(time.TimeOnly) }

func (r Reason) notReplanned() string {
	text := "its coming steps cannot be planned again: " + r.Text
	if r.Job != 0 {
		return "waits for " + msg.JobNumber(r.Job) + ", which began before it: " + text
	}
	return text
}

func (r Reason) plannedFor() string {
	if r.Text == "" {
		return fmt.Sprintf("waits for %d nodes, planned for %s", r.Nodes, r.clock())
	}
	return fmt.Sprintf("waits for %d nodes, replanned for %s: %s", r.Nodes, r.clock(), r.Text)
}

func (r Reason) failed() string {
	if r.Tries > 1 {
		return fmt.Sprintf("%s failed %d times, and is tried again at %s: %s", r.What, r.Tries, r.clock(), r.Text)
	}
	return r.What + " failed: " + r.Text
}
