package slurmctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ReasonKind classifies what a pending job waits for.
type ReasonKind int

const (
	// OtherReason is any other reason: a begin time, another job, ….
	OtherReason ReasonKind = iota
	// LimitReason is a limit or rule of the user, account, QOS, or partition. Other nodes would not
	// help.
	LimitReason
	// NodesReason is a lack of nodes, or jobs ahead in the queue.
	NodesReason
	// HeldReason is a hold by a user or administrator.
	HeldReason
)

// limitReasons lists the limit reasons that do not begin with Assoc or QOS.
var limitReasons = []string{"PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig", "AccountingPolicy", "AccountNotAllowed",
	"InvalidAccount", "InvalidQOS", "Licenses", "MaxMemPerLimit", "JobArrayTaskLimit", "TimeLimit", "InactiveLimit", "MaxPoweredUpNodes"}

// nodesReasons are compared by their beginnings, because squeue appends words.
var nodesReasons = []string{"None", "Resources", "Priority", "ReqNodeNotAvail", "Reservation", "Nodes required for job", "NodeDown",
	"BadConstraints", "Constraints", "PartitionDown", "PartitionInactive", "SchedDefer", "Cleaning"}

// KindOf classifies a reason from squeue (22.05 to 26.05).
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

// PendingError means that Slurm did not grant an allocation in time, or refused it because of a
// limit.
type PendingError struct {
	Job    JobID
	Reason string // as squeue showed it last; "" if never seen
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

// Limited reports whether a limit or rule of the user's account, QOS, or partition blocked or
// refused an allocation, and which. The limit is a reason from squeue, or Slurm's words if it
// refused at once (QOS with DenyOnLimit, partitions with EnforcePartLimits).
func Limited(err error) (limit string, ok bool) {
	if pending, ok := errors.AsType[*PendingError](err); ok {
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
