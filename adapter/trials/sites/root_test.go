package sites

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/evoslurm/evoslurm/adapter/trials/matrix"
)

// inRoot runs this very test in the root of the Slurm that the site needs, unless the machine has that Slurm.
func inRoot(t *testing.T, s Site) bool {
	t.Helper()
	if *built != "" || s.Native(t.Context()) {
		return false
	}
	release := matrix.Releases[slices.IndexFunc(matrix.Releases, func(r matrix.Release) bool { return r.Slurm == s.Slurm })]
	dir, err := os.MkdirTemp("", "evoslurm-root-") // not of the test: other users go through it
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer os.RemoveAll(dir)
	var log bytes.Buffer
	cmd, err := matrix.Again(t.Context(), release, &log, []string{bin, dir},
		"-test.run=^TestSites$/^"+s.Name+"$", "-test.v", "-sites.all", "-sites.bin="+bin, "-sites.results="+dir+"/results")
	if errors.Is(err, matrix.ErrUnavailable) {
		record(Result{Site: s.Name, Slurm: s.Slurm, Case: "all", Outcome: Skipped, Text: "Debian " + release.Suite + " " + err.Error()})
		t.Skipf("Slurm %s: skipped: Debian %s %v", s.Slurm, release.Suite, err)
	}
	must(err)
	if err := cmd.Run(); err != nil {
		t.Errorf("on Slurm %s: %v\n%s", s.Slurm, err, &log)
	}
	text, err := os.ReadFile(dir + "/results")
	must(err)
	var more []Result
	must(json.Unmarshal(text, &more))
	if len(more) == 0 {
		t.Errorf("no case was tried on Slurm %s\n%s", s.Slurm, &log)
	}
	for _, r := range more {
		t.Logf("%s: %s", r.Case, r.said())
		record(r)
	}
	return true
}

// writeResults writes the results of a run in a root.
func writeResults(path string) error {
	text, err := json.Marshal(results)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
