package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/plugins/strategytest"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// bySets is a strategy whose job starts at second 42 if it knows its nodes.
const bySets = `#!/usr/bin/python3
from evostrategy import POWERED_DOWN, NodeSet, Placement, Strategy, serve

class BySets(Strategy):
    name, help, node_sets = "sets", "For a test.", True

    def plan(self, request, values):
        known = request.sets[1] == NodeSet(3, 1, ("leaf", "top"), 7, ("x",), POWERED_DOWN, 30) and len(request.sets) == 2
        return [Placement(42 if known else 0, (60,))]

serve(BySets())
`

func TestPython(t *testing.T) {
	t.Run("in the tree", func(t *testing.T) {
		strategytest.Run(t, strategytest.Process("../python/asap"))
	})
	t.Run("a malleability policy", func(t *testing.T) {
		strategytest.Run(t, strategytest.Process("../python/level"))
	})
	t.Run("sets of nodes", func(t *testing.T) {
		t.Setenv("PYTHONPATH", "../python")
		script := filepath.Join(t.TempDir(), "sets")
		must.OK(t, os.WriteFile(script, []byte(bySets), 0o755))
		cmd := exec.Command(script)
		cmd.Env = os.Environ()
		c, err := strategy.Start(strategy.Launch{Command: cmd, Timeout: 30 * time.Second})
		must.OK(t, err)
		defer c.Close()
		d, err := c.Describe(t.Context(), nil)
		must.OK(t, err)
		a, err := c.Plan(t.Context(), nil, d, strategy.Request{
			Problem: planner.Problem{Nodes: 5, Jobs: []planner.Job{{ID: "1", ExpandLimit: 1, Profile: planner.Profile{{Duration: 60, Nodes: 1}}}}},
			Sets:    []planner.NodeSet{{Nodes: 2}, {Nodes: 3, Free: 1, Switches: []string{"leaf", "top"}, Weight: 7, Features: []string{"x"}, Power: planner.PoweredDown, Ready: 30}}})
		must.OK(t, err)
		if c.Version() != 3 || !d.NodeSets || a.Schedule[0].Start != 42 {
			t.Errorf("version %d, %+v, %+v", c.Version(), d, a)
		}
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
