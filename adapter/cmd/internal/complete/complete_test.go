package complete_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/evoslurm/evoslurm/adapter/cmd/internal/complete"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// Partitions and accounts are Slurm's; of a Slurm that is away there are none, and no word of it.
func TestFlags(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"scontrol": "echo PartitionName=main AllowGroups=ALL; echo PartitionName=small AllowGroups=ALL",
		"sacctmgr": "echo physics; echo biology",
	} {
		must.OK(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	}
	ask := func(want string, words ...string) {
		t.Helper()
		var out bytes.Buffer
		cmd := &cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}}
		cmd.Flags().StringSliceP("partition", "p", nil, "")
		cmd.Flags().StringSliceP("account", "A", nil, "")
		cmd.Flags().StringSlice("state", nil, "")
		complete.Flags(cmd, map[string]func(context.Context) []string{"partition": complete.Partitions, "account": complete.Accounts, "state": complete.Fixed("CD", "CA")})
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs(append([]string{"__complete"}, words...))
		if err := cmd.Execute(); err != nil || out.String() != want {
			t.Errorf("%q: %q, %v; want %q", words, out.String(), err, want)
		}
	}
	t.Setenv("EVOSLURM_CONFIG", filepath.Join(bin, "evoslurm.yaml"))
	must.OK(t, os.WriteFile(filepath.Join(bin, "evoslurm.yaml"), []byte("slurm:\n  bin: "+bin+"\n"), 0o600))
	ask("main\nsmall\n:4\n", "--partition", "")
	ask("small\n:4\n", "-p", "s")
	ask("main,small\n:4\n", "--partition=main,")
	ask("biology\nphysics\n:4\n", "-A", "")
	ask("CD\nCA\n:4\n", "--state", "C")
	for _, name := range []string{"scontrol", "sacctmgr"} {
		must.OK(t, os.Remove(filepath.Join(bin, name)))
	}
	ask(":4\n", "--partition", "")
	ask(":4\n", "-A", "")
}
