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
