package main

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
	"github.com/evoslurm/evoslurm/adapter/job/submit"
)

// TestManual sees that the manual knows every option of evosbatch's own and every
// one that is refused.
func TestManual(t *testing.T) {
	text := contribtest.Manual(t, "evosbatch.1")
	for _, name := range []string{"profile", "moldable", "moldable-by", "malleable", "size", "grace", "speedup", "expand-limit", "drive", "on-grow", "on-shrink", "on-step", "require-profile", "tasks", "bag", "retries", "checkpoint", "checkpoint-signal", "checkpoint-cmd", "restart-cmd", "task-time", "drain-time", "collect", "dry-run", "help", "usage", "version"} {
		if !strings.Contains(text, "--"+name) || !strings.Contains(help, "--"+name) {
			t.Errorf("--%s is not in the manual, or not in the help", name)
		}
	}
	for _, name := range submit.Refused() {
		switch name {
		case "ntasks-per-tres",
			"cluster-constraint", "spread-segments", "consolidate-segments":
			continue // "and their like"
		}
		if !strings.Contains(text, "--"+name) {
			t.Errorf("--%s is refused, and not in the manual", name)
		}
	}
	if !strings.Contains(text, submit.ParkedUntil) {
		t.Errorf("the manual has another time for parked jobs than %s", submit.ParkedUntil)
	}
}
