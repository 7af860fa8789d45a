package slurmctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ReasonKind says what a pending job waits for.
type ReasonKind int

const (
	// OtherReason is one that none of the others names: a begin time, another job, ….
	OtherReason ReasonKind = iota
	// LimitReason is a limit of the user, account, QOS or partition, or a rule of
	// theirs: no other nodes help, and the nodes asked for are not at fault.
	LimitReason
	// NodesReason is nodes, or its turn at them.
	NodesReason
	// HeldReason: the job is on hold.
	HeldReason
)

// limitReasons are those beside the ones that their beginnings tell (Assoc…, QOS…).
var limitReasons = []string{"PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "AccountingPolicy", "AccountNotAllowed",
	"InvalidAccount", "InvalidQOS", "Licenses", "MaxMemPerLimit", "JobArrayTaskLimit", "TimeLimit", "InactiveLimit", "MaxPoweredUpNodes"}

// nodesReasons are compared by their beginnings: what squeue adds behind is words.
var nodesReasons = []string{"None", "Resources", "Priority", "ReqNodeNotAvail", "Reservation", "Nodes required for job", "NodeDown",
	"BadConstraints", "Constraints", "PartitionDown", "PartitionInactive", "SchedDefer", "Cleaning"}

// KindOf says what a reason of squeue's (22.05 to 26.05) is about.
func KindOf(reason string) ReasonKind {
	switch {
	case strings.HasPrefix(reason, "JobHeld"), strings.HasPrefix(reason, "job requeued in held state"), reason == "JobHoldMaxRequeue":
		return HeldReason
	case strings.HasPrefix(reason, "Assoc"), strings.HasPrefix(reason, "QOS"), slices.Contains(limitReasons, reason),
		strings.HasPrefix(reason, "Max") && (strings.HasSuffix(reason, "PerAccount") || strings.HasSuffix(reason, "PerUser")):
		return LimitReason
	case slices.ContainsFunc(nodesReasons, func(p string) bool { return strings.HasPrefix(reason, p) }):
		return NodesReason
	}
	return OtherReason
}

// PendingError is an allocation that Slurm did not grant in the time that it had,
// or would not grant for a limit.
type PendingError struct {
	Job    JobID
	Reason string // as squeue showed it at last; "": never seen
	Err    error
}

func (e *PendingError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "no reason seen"
	}
	return fmt.Sprintf("job %d stayed pending (%s): %v", e.Job, oneLine(reason, 80), e.Err)
}

func (e *PendingError) Unwrap() error { return e.Err }

// Limited reports whether an allocation was kept back or refused by a limit or a rule
// of the user's account, QOS or partition, and by which: a reason of squeue's, or
// the words in which Slurm refused it at once (QOS with DenyOnLimit, partitions with
// EnforcePartLimits).
func Limited(err error) (limit string, ok bool) {
	var pending *PendingError
	if errors.As(err, &pending) {
		return pending.Reason, KindOf(pending.Reason) == LimitReason
	}
	var ce *CommandError
	if !errors.As(err, &ce) || len(ce.Args) == 0 || ce.Args[0] != "salloc" || !ce.Is(ErrLimit) && !ce.Is(ErrNodeCount) {
		return "", false
	}
	_, words, found := strings.Cut(ce.Message(), "allocate failed: ")
	if !found {
		words = ce.Message()
	}
	words, _, _ = strings.Cut(words, ";")
	return oneLine(words, 120), true
}
