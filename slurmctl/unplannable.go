package slurmctl

import (
	"fmt"
	"slices"
	"strings"
)

// plannable are the flags of reservations in which jobs can be planned, without their values.
var plannable = []string{"SPEC_NODES", "ALL_NODES", "PART_NODES", "IGNORE_JOBS", "NO_HOLD_JOBS_AFTER_END", "PURGE_COMP", "REPLACE_DOWN",
	"STATIC", "STATIC_ALLOC", "MAGNETIC", "USER_DELETE"}

// unplannable says why jobs cannot be planned in reservations with these flags.
var unplannable = map[string]string{
	"OVERLAP": "other reservations keep none of its jobs off their nodes",
	"MAINT":   "other reservations keep none of its jobs off their nodes",
	"FLEX":    "its jobs also run before it and outside of its nodes",
	"REPLACE": "Slurm takes the nodes that its jobs use out of it",
}

// Unplannable returns why jobs of a user cannot be planned on the nodes of a reservation, or "". Holds work inside it, unless its flags say
// otherwise: Slurm keeps its jobs off held nodes, as it keeps all other jobs. But while nodes are held, Slurm refuses a new job that
// needs more nodes of the reservation than are left, in place of letting it wait (22.05: measured). So no other user may have jobs there.
func (r Reservation) Unplannable(user string) string {
	for _, flag := range r.Flags {
		name, _, _ := strings.Cut(flag, "=")
		if why := unplannable[name]; why != "" {
			return fmt.Sprintf("reservation %s has the flag %s: %s", r.Name, name, why)
		}
		if !slices.Contains(plannable, name) {
			return fmt.Sprintf("reservation %s has the flag %s, with which its jobs cannot be planned yet", r.Name, name)
		}
	}
	if r.IsShared(user) {
		return fmt.Sprintf("reservation %s is not for user %s alone, and while nodes of it are held, Slurm would refuse larger jobs of its other users", r.Name, user)
	}
	if len(r.Nodes) == 0 {
		return fmt.Sprintf("reservation %s has no nodes", r.Name)
	}
	return ""
}

// IsShared reports whether others than a user may run jobs in the reservation.
func (r Reservation) IsShared(user string) bool {
	return len(r.Users) != 1 || r.Users[0] != user || len(r.Accounts) > 0
}
