package slurmctl

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed: evosctl and the
// other commands of users start in a few milliseconds, and need none or two of them.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
