package msg

import "slices"

// Without returns the members of a that are not in b, in a's order. It is fast if all are in b in the same
// order, which is the usual case for nodes.
func Without(a, b []string) []string {
	k := 0
	for i, x := range a {
		at := slices.Index(b[k:], x)
		if at < 0 {
			return without(a[i:], SetOf(b))
		}
		k += at + 1
	}
	return nil
}

// Common returns the members of a that are in b, in a's order.
func Common(a, b []string) []string {
	in := SetOf(b)
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
	return len(a) == len(b) && len(Without(a, b)) == 0
}
