package state

import "github.com/evoslurm/evoslurm/adapter/sidecar/core/msg"

// Common returns the members of a that are in b, in a's order.
func Common(a, b []string) []string {
	in := msg.SetOf(b)
	var both []string
	for _, x := range a {
		if in[x] {
			both = append(both, x)
		}
	}
	return both
}

// SameSet reports whether a and b have the same members. Neither list may repeat a member.
func SameSet(a, b []string) bool {
	return len(a) == len(b) && len(msg.Without(a, b)) == 0
}
