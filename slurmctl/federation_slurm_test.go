package slurmctl_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestFederation checks that a real cluster is seen to join a federation.
func TestFederation(t *testing.T) {
	f := start(t, slurmtest.Options{Nodes: 1, Accounting: true})
	c := &slurmctl.Client{Env: f.Env}
	name, err := c.Federation(f.ctx)
	f.must(err)
	if name != "" {
		t.Fatalf("it is in federation %q", name)
	}
	cfg, err := c.Config(f.ctx)
	f.must(err)
	cmd := exec.Command("sacctmgr", "-i", "add", "federation", "north", "clusters="+cfg.ClusterName)
	cmd.Env = append(cmd.Environ(), f.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for end := time.Now().Add(20 * time.Second); name == "" && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		name, err = c.Federation(f.ctx)
		f.must(err)
	}
	if name != "north" {
		t.Errorf("it is in federation %q, want north", name)
	}
}
