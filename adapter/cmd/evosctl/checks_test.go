package main

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

func TestSlurmdbd(t *testing.T) {
	for _, c := range []struct {
		version, storage string
		want             result
		remedy           string
	}{
		{"22.05.8", "(null)", warn, "resize a job more than once"},
		{"22.05.8", "accounting_storage/slurmdbd", ok, "quickack"},
		{"23.11.4", "accounting_storage/slurmdbd", ok, "quickack"},
		{"24.11.5", "accounting_storage/slurmdbd", ok, ""},
	} {
		d := &doctor{}
		d.accounting(slurmctl.Config{Version: c.version, Values: map[string]string{"AccountingStorageType": c.storage}})
		got := d.Checks[0]
		if got.Result != c.want || !strings.Contains(got.Remedy, c.remedy) || (c.remedy == "") != (got.Remedy == "") {
			t.Errorf("Slurm %s with %s: %+v, want %s and %q", c.version, c.storage, got, c.want, c.remedy)
		}
	}
}
