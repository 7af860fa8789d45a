package msg

// Set is a set of node names.
type Set map[string]bool

func SetOf(lists ...[]string) Set {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	s := make(Set, n)
	for _, list := range lists {
		for _, x := range list {
			s[x] = true
		}
	}
	return s
}

// Add adds names.
func (s Set) Add(names []string) {
	for _, x := range names {
		s[x] = true
	}
}

// Any reports whether one of the names is in the set.
func (s Set) Any(names []string) bool {
	for _, x := range names {
		if s[x] {
			return true
		}
	}
	return false
}

func without(a []string, b Set) []string {
	var rest []string
	for _, x := range a {
		if !b[x] {
			rest = append(rest, x)
		}
	}
	return rest
}
