package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
)

// TestManual sees that the manual has every command, and every option of run and replay.
func TestManual(t *testing.T) {
	text := contribtest.Manual(t, "evosim.1")
	for _, cmd := range newCommand().Commands() {
		if name := cmd.Name(); name != "completion" && name != "help" && !strings.Contains(text, name) {
			t.Errorf("%s is not in the manual", name)
		}
		if name := cmd.Name(); name != "run" && name != "replay" {
			continue // see their --help
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("--%s of %s is not in the manual", f.Name, cmd.Name())
			}
		})
	}
}
