package core

import (
	"fmt"
	"time"
)

// reason holds why a job is in its current state: a kind, and the values for the kind's words. It is a plain
// value; words makes the sentence that evosqueue shows.
type reason struct {
	kind  reasonKind
	job   uint32    // another job that comes first
	nodes int       // number of nodes that it gets, gives back, or waits for
	tries int       // how often an action has failed in a row
	at    time.Time // when it continues, by the machine's clock
	what  string    // an action, in words
	text  string    // what Slurm, a limit, or the planner says
}

// reasonKind names one cause for a job's current state.
type reasonKind uint8

const (
	whyNothing reasonKind = iota // the job goes on as planned

	// Something is not known yet.
	whyRequestUnread       // what the job asks for
	whyEarlierUnread       // what a job before it asks for
	whyLimitsUnread        // the limits of its partitions
	whyPartitionUnread     // the limits of the partition that it grows in
	whyDatabaseNotWritable // nothing happens before it is written to the database

	// The plan.
	whyNotPlanned     // text says why it has no plan
	whyNotReplanned   // text says why its coming steps have none; job began before it
	whyWaitsForLower  // text names the job of lower priority whose end it waits for
	whyClaimsConflict // all jobs with claims could end up waiting for each other
	whyPlannedFor     // it waits for nodes that are planned for a time; text says why they were planned again
	whyPromisedAway   // its nodes were promised to job in the meantime
	whyRoomUnder      // there may be room again under the limit in text
	whyNotStarted     // Slurm did not start it on idle nodes, for the reason in text
	whyLapsed         // nodes are no longer held for its coming steps; text says why
	whyOverruns       // its step lasts longer than its profile says

	// Nodes and holds.
	whyHeldSoon        // its nodes will be held soon
	whyHoldMoves       // its hold is being moved
	whyReservedSoon    // others have reserved its nodes for too soon
	whyNodesAwaited    // text says what its nodes wait for
	whySwitchingOn     // the sidecar is switching its nodes on
	whyConfiguring     // Slurm is switching its nodes on
	whyExpanderUnready // text says what the expander waits for
	whyExpanderQueued  // text says why the expander has not begun

	// Actions.
	whyUserBusy   // too many actions of its user are under way
	whyGrows      // it is getting nodes
	whyShrinks    // it is giving nodes back
	whyReshaped   // it is getting the nodes of the chosen alternative
	whyReleased   // it was released in Slurm and is about to run
	whyKeptBack   // text says which limit keeps it back
	whyFailed     // what failed, with the error in text; after several failures it is retried at a time
	whyCompleting // it is completing
	whySuspended  // it is suspended in Slurm since a time
)

// fixedWords holds the words of the kinds without values.
var fixedWords = map[reasonKind]string{
	whyRequestUnread:       "its request is being read",
	whyLimitsUnread:        "the limits of its partitions are being read",
	whyPartitionUnread:     "the limits of its partition are being read",
	whyDatabaseNotWritable: "waits for the sidecar's database, which cannot be written at present",
	whyClaimsConflict:      unsafe,
	whyOverruns:            "the step lasts longer than its profile says",
	whyHeldSoon:            "its nodes are being held",
	whyHoldMoves:           "its hold is being moved",
	whyReservedSoon:        "its nodes are reserved for others in less than a minute, which is Slurm's shortest time limit",
	whySwitchingOn:         "its nodes are being switched on",
	whyConfiguring:         "Slurm is switching its nodes on",
	whyUserBusy:            "waits for other jobs of its user that are being changed",
	whyReshaped:            "gets the nodes of the chosen alternative",
	whyReleased:            "let go, about to run",
	whyCompleting:          "completing",
}

// because returns a reason of a kind without values.
func because(kind reasonKind) reason { return reason{kind: kind} }

// saying returns a reason of a kind with the caller's words.
func saying(kind reasonKind, text string) reason { return reason{kind: kind, text: text} }

// words returns the sentence that users read; "": there is nothing to say.
func (r reason) words() string {
	if fixed, ok := fixedWords[r.kind]; ok {
		return fixed
	}
	switch r.kind {
	case whyEarlierUnread:
		return fmt.Sprintf("waits for job %d, whose request is being read", r.job)
	case whyNotReplanned:
		return r.notReplanned()
	case whyPlannedFor:
		return r.plannedFor()
	case whyPromisedAway:
		return fmt.Sprintf("is planned again: its nodes were promised to job %d", r.job)
	case whyRoomUnder:
		return "is planned again: there may be room under " + r.text
	case whyNotStarted:
		return "is planned again: Slurm did not start it on idle nodes (" + r.text + ")"
	case whyGrows:
		return fmt.Sprintf("gets %d nodes", r.nodes)
	case whyShrinks:
		return fmt.Sprintf("gives %d nodes back", r.nodes)
	case whyFailed:
		return r.failed()
	case whySuspended:
		return "Slurm has suspended it since " + r.clock()
	}
	return r.text
}

func (r reason) clock() string { return r.at.Local().Format(time.TimeOnly) }

func (r reason) notReplanned() string {
	text := "its coming steps cannot be planned again: " + r.text
	if r.job != 0 {
		return "waits for " + jobNumber(r.job) + ", which began before it: " + text
	}
	return text
}

func (r reason) plannedFor() string {
	if r.text == "" {
		return fmt.Sprintf("waits for %d nodes, planned for %s", r.nodes, r.clock())
	}
	return fmt.Sprintf("waits for %d nodes, replanned for %s: %s", r.nodes, r.clock(), r.text)
}

func (r reason) failed() string {
	if r.tries > 1 {
		return fmt.Sprintf("%s failed %d times, and is tried again at %s: %s", r.what, r.tries, r.clock(), r.text)
	}
	return r.what + " failed: " + r.text
}
