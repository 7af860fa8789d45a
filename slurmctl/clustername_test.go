package slurmctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

func TestClusterName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slurm.conf")
	must.OK(t, os.WriteFile(file, []byte("# ClusterName=old\nSlurmctldHost=head # ClusterName=x\nclustername=\"Blue\" SlurmUser=slurm\n"), 0o600))
	env := map[string]string{"SLURM_CONF": file}
	getenv := func(name string) string { return env[name] }
	c := &Client{Dir: t.TempDir()} // no command may run
	if name, err := c.ClusterName(t.Context(), getenv); name != "Blue" || err != nil {
		t.Errorf("by slurm.conf: %q, %v", name, err)
	}
	env["SLURM_CLUSTER_NAME"] = "red"
	if name, err := c.ClusterName(t.Context(), getenv); name != "red" || err != nil {
		t.Errorf("inside a job: %q, %v", name, err)
	}
	delete(env, "SLURM_CLUSTER_NAME")
	must.OK(t, os.WriteFile(file, []byte("include other.conf\n"), 0o600))
	script := "#!/bin/sh\necho 'SLURM_VERSION = 22.05.8'\necho 'ClusterName = green'\n"
	must.OK(t, os.WriteFile(filepath.Join(c.Dir, "scontrol"), []byte(script), 0o700))
	if name, err := c.ClusterName(t.Context(), getenv); name != "green" || err != nil {
		t.Errorf("by slurmctld: %q, %v", name, err)
	}
}
