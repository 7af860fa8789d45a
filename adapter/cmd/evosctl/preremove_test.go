package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestPreremove: removing the package names what Slurm still has of Evoslurm's, and how to let it go. It never fails,
// and says nothing at an upgrade, without Slurm, or if there is nothing.
func TestPreremove(t *testing.T) {
	script, err := filepath.Abs("../../../contrib/packages/preremove")
	must.OK(t, err)
	for _, c := range []struct{ arg, evosctl, want string }{
		{"remove", "echo 'hold evo_7_2_1 on n3: given up'", "let it go: evosctl release-all --direct\nhold evo_7_2_1 on n3: given up\n"},
		{"0", "echo 'queued 7: let go'", "queued 7"},
		{"remove", "echo \"nothing of Evoslurm's is in Slurm\"", ""},
		{"remove", "echo 'hold x'; exit 1", ""},
		{"upgrade", "echo 'hold x'", ""},
		{"1", "echo 'hold x'", ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"evosctl": c.evosctl, "systemctl": "exit 1"} {
			must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		}
		cmd := exec.Command("sh", script, c.arg)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) || (len(out) > 0) != (c.want != "") {
			t.Errorf("%s, %s: %v, %s; want %q", c.arg, c.evosctl, err, out, c.want)
		}
	}
}
