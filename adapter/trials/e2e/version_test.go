package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion: every command says its version, outside of jobs and without a configuration.
func TestVersion(t *testing.T) {
	for _, name := range []string{"evosbatch", "evosqueue", "evosacct", "evosctl", "evosrun", "evosim", "evoslurmd"} {
		cmd := exec.Command(filepath.Join(bin, name), "-V")
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "evoslurm ") {
			t.Errorf("%s -V: %q, %v", name, out, err)
		}
	}
}
