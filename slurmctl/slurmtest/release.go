package slurmtest

import (
	"os/exec"
	"strings"
	"testing"
)

// Needs reports whether the Slurm that clusters are made of is of a release, such as "24.11", or of a later one. A test that
// needs that returns otherwise: the matrix (adapter/trials/matrix) runs it in a root with such a Slurm.
func Needs(t testing.TB, release string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "slurmctld", "-V").Output() // it needs no slurm.conf
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if version >= release { // both begin with YY.MM
		return true
	}
	t.Logf("Slurm %s here: the test needs %s", version, release)
	return false
}
