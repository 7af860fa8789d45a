package main

import (
	"bytes"
	"strings"
	"testing"
)

// evolaunch, which is evosctl launch, also prints its usage outside of jobs.
func TestLaunchUsage(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"launch", "--usage"})
	root.SetOut(&out)
	if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), "Usage: evolaunch [") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
