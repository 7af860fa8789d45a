package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/contribtest"
)

// TestManual sees that the manual has every option, and every column and state.
func TestManual(t *testing.T) {
	text := contribtest.Options(t, "evosqueue.1", newCommand().Flags())
	for name, f := range fields {
		if !strings.Contains(text, "{"+name+"}\n"+f.help) {
			t.Errorf("field %s is not in the manual", name)
		}
	}
	for _, c := range shortColumns {
		switch c.title {
		case "NAME", "USER":
			continue // as in squeue
		}
		if !strings.Contains(text, c.title) {
			t.Errorf("column %s is not in the manual", c.title)
		}
	}
	for _, s := range states {
		if !strings.Contains(text, s.names[0]) {
			t.Errorf("state %s is not in the manual", s.names[0])
		}
	}
	for name := range variables {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			t.Errorf("variable %s is not in the manual", name)
		}
	}
}
