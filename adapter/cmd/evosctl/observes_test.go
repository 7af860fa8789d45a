package main

import (
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl"
)

// TestSight: an administrator learns what an observing sidecar does not see.
func TestSight(t *testing.T) {
	private := slurmctl.Config{Values: map[string]string{"PrivateData": "usage,jobs,reservations"}}
	for _, c := range []struct {
		sees   bool
		hidden []string
		want   string
	}{
		{false, slurmctl.Config{}.Hidden(), "Slurm shows everything"},
		{true, private.Hidden(), "evo sees what PrivateData hides from users: jobs, reservations"},
		{false, private.Hidden(), "PrivateData hides from evo: jobs, reservations; what is hidden is not in the record"},
		{false, []string{"partitions"}, "PrivateData hides from evo: partitions; a sidecar with this account cannot poll Slurm"},
	} {
		d := &doctor{}
		if d.sight("evo", c.sees, c.hidden); !strings.HasPrefix(d.Checks[0].Detail, c.want) {
			t.Errorf("doctor says %+v, want %q", d.Checks, c.want)
		}
	}
}
