package slurmctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestCompleteFallsBack checks that a job ends by scancel wherever it cannot be completed: without Slurm's Perl interface,
// and where that belongs to another cluster.
func TestCompleteFallsBack(t *testing.T) {
	for name, tc := range map[string]struct{ perl, want string }{
		"no perl":         {"", "scancel --quiet 7 8\n"},
		"no interface":    {"exit 2", "scancel --quiet 7 8\n"},
		"another cluster": {`[ "$4" = other ] || exit 3`, "scancel --quiet 7 8\n"},
		"completed":       {`[ "$4 $5 $6" = "mine 7 8" ]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			c := stand(t, "scancel", "echo scancel $* >>"+log)
			write := func(name, script string) {
				must.OK(t, os.WriteFile(filepath.Join(c.Dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
			}
			write("scontrol", "echo ClusterName = mine; echo SLURM_VERSION = 22.05.8")
			if tc.perl != "" {
				write("perl", tc.perl)
			}
			c.Env = []string{"PATH=" + c.Dir}
			must.OK(t, c.Complete(t.Context(), 7, 8))
			said, err := os.ReadFile(log)
			if err != nil && tc.want != "" || string(said) != tc.want {
				t.Errorf("it ran %q, want %q (%v)", said, tc.want, err)
			}
		})
	}
}
