//go:build examples

package e2e_test

import (
	"slices"
	"syscall"
	"testing"
)

// TestExamplesCodes runs the examples of codes that people run, through four resizes in both drive modes.
func TestExamplesCodes(t *testing.T) {
	s := newExamples(t, 48)
	all := []example{
		{folder: "parallel", profile: following, resizes: true, variables: "TASKS=6000,PAUSE=0.1,DRAIN=30s", check: paralleled(6000, false)},
		{folder: "parallel", profile: following, resizes: true, variables: "TASKS=8000,PAUSE=0.1,CHUNK=200,DRAIN=4s", check: paralleled(8000, true)},
	}
	s.examples(slices.DeleteFunc(all, func(e example) bool { return *only != "" && *only != e.folder }))
	s.stop(syscall.SIGTERM)
}
