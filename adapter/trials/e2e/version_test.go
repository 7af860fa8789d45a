package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersion: every command says its version and its usage, outside of jobs and without a
// configuration, and is as strict with unknown options as Slurm's commands: status 1, or what
// its manual says.
func TestVersion(t *testing.T) {
	for _, name := range []string{"evosbatch", "evosqueue", "evosacct", "evosctl", "evosrun", "evosim", "evostop", "evoslurmd"} {
		cmd := exec.Command(filepath.Join(bin, name), "-V")
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "evoslurm ") {
			t.Errorf("%s -V: %q, %v", name, out, err)
		}
		cmd = exec.Command(filepath.Join(bin, name), "--usage")
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "Usage: "+name+" [") || strings.Count(string(out), "\n") > 12 {
			t.Errorf("%s --usage: %q, %v", name, out, err)
		}
		status := map[string]int{"evosim": 2, "evoslurmd": 64}[name]
		if status == 0 {
			status = 1
		}
		cmd = exec.Command(filepath.Join(bin, name), "--no-such-option")
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != status || len(out) == 0 {
			t.Errorf("%s --no-such-option: status %d, want %d\n%s", name, cmd.ProcessState.ExitCode(), status, out)
		}
	}
}
