package strategy_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/planner/malleable"
	"github.com/evoslurm/evoslurm/plugins/strategy"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestOldPluginsKeepWorking checks that a plugin that speaks only version 1, and a newer plugin
// that is not a malleability policy, are not mistaken for failing plugins.
func TestOldPluginsKeepWorking(t *testing.T) {
	klein := filepath.Join(t.TempDir(), "klein")
	if out, err := exec.Command("go", "build", "-o", klein, "../cmd/klein").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asap, err := filepath.Abs("../python/asap")
	must.OK(t, err)
	for path, version := range map[string]int{klein: 3, asap: 1} {
		c, err := strategy.Start(strategy.Launch{Command: exec.Command(path)})
		must.OK(t, err)
		if c.Version() != version {
			t.Errorf("%s: protocol version %d, want %d", path, c.Version(), version)
		}
		request := strategy.ResizeRequest{Nodes: 4, Asked: malleable.Request{Kind: malleable.Grow, Nodes: 3}, Jobs: []malleable.Job{{Nodes: 1, Min: 1, Max: 4}}}
		if _, err := c.Resize(context.Background(), nil, request); !errors.Is(err, strategy.ErrNoResize) {
			t.Errorf("%s: Resize: %v, want ErrNoResize", path, err)
		}
		c.Close()
	}
}
