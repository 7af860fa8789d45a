package slurmctl

import (
	"regexp"
	"sync"
)

// pattern returns a regular expression that is compiled on first use. evosctl and the other user
// commands start in a few milliseconds and need one or two of them at most.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
