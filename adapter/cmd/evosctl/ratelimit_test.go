package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestRateLimit checks what doctor says of rl_enable to a user that it holds for, and to SlurmUser.
func TestRateLimit(t *testing.T) {
	for _, c := range []struct {
		params, slurmUser string
		want              result
		detail            string
	}{
		{"", "slurm(64030)", ok, "limits no user's requests"},
		{"rl_enable", "root(0)", ok, "30 requests of a user at once, and then 2 every 1s"},
		{"rl_enable,rl_refill_rate=1", "root(0)", ok, "root and SlurmUser are exempt"},
	} {
		d := &doctor{}
		d.rateLimit(slurmctl.Config{Values: map[string]string{"SlurmctldParameters": c.params, "SlurmUser": c.slurmUser}})
		if got := d.Checks[0]; got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestFederationCheck checks that doctor refuses a federated cluster by the federation's name.
func TestFederationCheck(t *testing.T) {
	for script, want := range map[string]result{"echo 'Federation: north'": fail, "exit 0": ok, "exit 1": warn} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		d := &doctor{slurm: &slurmctl.Client{Dir: dir}}
		for _, storage := range []string{"(null)", "accounting_storage/slurmdbd"} {
			d.federation(t.Context(), slurmctl.Config{ClusterName: "c", Values: map[string]string{"AccountingStorageType": storage}})
		}
		if len(d.Checks) != 1 || d.Checks[0].Result != want || want == fail && !strings.Contains(d.Checks[0].Detail, `federation "north"`) {
			t.Errorf("%s: %+v, want one %s", script, d.Checks, want)
		}
	}
}
