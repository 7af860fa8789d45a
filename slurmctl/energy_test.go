package slurmctl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestGathersEnergy: none is a plugin up to 23.11, and no plugin later.
func TestGathersEnergy(t *testing.T) {
	for kind, want := range map[string]bool{"": false, "acct_gather_energy/none": false, "acct_gather_energy/rapl": true, "acct_gather_energy/ipmi,acct_gather_energy/gpu": true} {
		if got := (Config{Values: map[string]string{"AcctGatherEnergyType": kind}}).GathersEnergy(); got != want {
			t.Errorf("%q: %v", kind, got)
		}
	}
}

// TestParseMeasuredSteps reads what sacct 22.05 printed of a job whose steps' consumed_energy in the database is 7200, NO_VAL64,
// 2^64-1 less 500 (a counter that ran over), and 0; then of a running step, and lines that no step has.
func TestParseMeasuredSteps(t *testing.T) {
	const text = `7|1796000000|1796000040||n[1-2]
7.batch|1796000000|1796000040|0|n1
7.extern|1796000000|1796000040|9000|n[1-2]
7.0|1796000001|1796000011|7200|n[1-2]
7.1|1796000012|1796000013||n[1-2]
7.2|1796000014|1796000015|18446744073709551115|n1
7.3|1796000016|1796000016|0|n1
7.4|1796000017|Unknown|0|n1
7.5|1796000017|1796000018|4000001|n1
7.6|1796000017|1796000018|-5|n1
7.7|1796000017|9223372036854775807|5|n1
7.8|None|1796000018|5|n1
7.9|1796000017|1796000018|5
7.10|1796000017|1796000018|5|n[
`
	var got []string
	for _, s := range parseMeasuredSteps(text) {
		took := -time.Second
		if !s.End.IsZero() {
			took = s.End.Sub(s.Start)
		}
		got = append(got, fmt.Sprint(s.Start.Unix()-1796000000, " ", took, " ", s.Joules, " ", s.Nodes))
	}
	want := []string{"1 10s 7200 n[1-2]", "12 1s -1 n[1-2]", "14 1s -1 n1", "16 0s 0 n1", "17 -1s -1 n1", "17 1s -1 n1", "17 1s -1 n1", "17 -1s -1 n1", "17 1s -1 n["}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMeasuredStepsBounded: an endless answer is an error, and is not kept.
func TestMeasuredStepsBounded(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "sacct"), []byte("#!/bin/sh\nyes '7.0|1796000001|1796000011|7200|n[1-2]'\n"), 0o755))
	c := &Client{Dir: dir}
	if _, err := c.MeasuredSteps(t.Context(), 5, time.Unix(1796000000, 0), time.Unix(1796009999, 0)); err == nil || err.Error() != "sacct prints more than 16777216 bytes" {
		t.Error(err)
	}
}
