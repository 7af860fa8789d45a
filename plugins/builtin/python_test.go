package builtin

import (
	"os"
	"os/exec"
	"testing"

	"github.com/evoslurm/evoslurm/plugins/strategytest"
)

func TestPython(t *testing.T) {
	t.Run("in the tree", func(t *testing.T) {
		strategytest.Run(t, strategytest.Process("../python/asap"))
	})
	t.Run("a malleability policy", func(t *testing.T) {
		strategytest.Run(t, strategytest.Process("../python/level"))
	})
	t.Run("installed", func(t *testing.T) {
		// asap finds the SDK beside itself; a copy must find the installed SDK
		dir := t.TempDir()
		cmd := exec.Command("make", "-C", "../python", "install", "DESTDIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make install: %v\n%s", err, out)
		}
		t.Setenv("PYTHONPATH", dir+"/usr/lib/evoslurm/python")
		if _, err := os.Stat(dir + "/usr/libexec/evoslurm/strategies/asap"); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(dir + "/usr/libexec/evoslurm/strategies/asap").CombinedOutput()
		if err == nil || len(out) == 0 {
			t.Errorf("started by hand it says %q (%v), want what it is and a failure", out, err)
		}
	})
}
