package slurmctl

import (
	"errors"
	"testing"
)

func TestKindOf(t *testing.T) {
	for reason, want := range map[string]ReasonKind{
		"AssocGrpNodeLimit": LimitReason, "AssociationResourceLimit": LimitReason, "QOSMaxJobsPerUserLimit": LimitReason,
		"QOSNotAllowed": LimitReason, "PartitionNodeLimit": LimitReason, "MaxMemPerLimit": LimitReason, "MaxNodePerAccount": LimitReason,
		"MaxNodeRunMinsPerUser": LimitReason, "Licenses": LimitReason, "AccountNotAllowed": LimitReason,
		"Resources": NodesReason, "Priority": NodesReason, "None": NodesReason, "ReqNodeNotAvail": NodesReason,
		"ReqNodeNotAvail, May be reserved for other job": NodesReason, "Reservation": NodesReason,
		"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": NodesReason,
		"JobHeldUser": HeldReason, "JobHeldAdmin": HeldReason, "BeginTime": OtherReason, "Dependency": OtherReason, "": OtherReason,
	} {
		if got := KindOf(reason); got != want {
			t.Errorf("%q: %v, want %v", reason, got, want)
		}
	}
}

func TestLimited(t *testing.T) {
	salloc := func(words string) error {
		return &CommandError{Args: []string{"salloc", "--no-shell"}, ExitCode: 1, Stderr: "salloc: error: Job submit/allocate failed: " + words + "\n"}
	}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no limit
	}{
		"pending for a limit": {&PendingError{Job: 7, Reason: "AssocGrpNodeLimit", Err: errors.New("stopped")}, "AssocGrpNodeLimit"},
		"pending for nodes":   {&PendingError{Job: 7, Reason: "Resources", Err: errors.New("out of time")}, ""},
		"DenyOnLimit":         {salloc("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"), "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"},
		"MinNodes":            {salloc("Node count specification invalid"), "Node count specification invalid"},
		"lost link":           {&CommandError{Args: []string{"scontrol", "update"}, ExitCode: 1, Stderr: "slurm_update error: Node count specification invalid"}, ""},
		"other":               {salloc("Invalid node name specified"), ""},
		"none":                {nil, ""},
	} {
		if got, ok := Limited(c.err); got != c.want && ok || ok != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, c.want)
		}
	}
}
