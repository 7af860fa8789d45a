package core

import "slices"

// set is a set of node names.
type set map[string]bool

func setOf(lists ...[]string) set {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	s := make(set, n)
	for _, list := range lists {
		for _, x := range list {
			s[x] = true
		}
	}
	return s
}

// add adds names.
func (s set) add(names []string) {
	for _, x := range names {
		s[x] = true
	}
}

// any reports whether one of the names is in the set.
func (s set) any(names []string) bool {
	for _, x := range names {
		if s[x] {
			return true
		}
	}
	return false
}

// Without returns the members of a that are not in b, in a's order. It is fast if all are in b in the same
// order, which is the usual case for nodes.
func Without(a, b []string) []string {
	k := 0
	for i, x := range a {
		at := slices.Index(b[k:], x)
		if at < 0 {
			return without(a[i:], setOf(b))
		}
		k += at + 1
	}
	return nil
}

func without(a []string, b set) []string {
	var rest []string
	for _, x := range a {
		if !b[x] {
			rest = append(rest, x)
		}
	}
	return rest
}

// common returns the members of a that are in b, in a's order.
func common(a, b []string) []string {
	in := setOf(b)
	var both []string
	for _, x := range a {
		if in[x] {
			both = append(both, x)
		}
	}
	return both
}

// sameSet reports whether a and b have the same members. Neither list may repeat a member.
func sameSet(a, b []string) bool {
	return len(a) == len(b) && len(Without(a, b)) == 0
}
