package sites

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
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
	var log bytes.Buffer
	root, err := matrix.Root(t.Context(), release, nil, &log)
	if errors.Is(err, matrix.ErrUnavailable) {
		record(Result{Site: s.Name, Slurm: s.Slurm, Case: "all", Outcome: Skipped, Text: "Debian " + release.Suite + " " + err.Error()})
		t.Skipf("Slurm %s: skipped: Debian %s %v", s.Slurm, release.Suite, err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
	}
	must(err)
	self, err := os.Executable()
	must(err)
	dir, err := os.MkdirTemp("", "evoslurm-root-") // not of the test: other users go through it
	must(err)
	defer os.RemoveAll(dir)
	cmd, err := matrix.Enter(t.Context(), root, []string{filepath.Dir(self), bin, dir}, self,
		"-test.run=^TestSites$/^"+s.Name+"$", "-test.v", "-sites.all", "-sites.bin="+bin, "-sites.results="+dir+"/results")
	must(err)
	log.Reset()
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil {
		t.Errorf("in the root %s: %v\n%s", root, err, &log)
	}
	text, err := os.ReadFile(dir + "/results")
	must(err)
	var more []Result
	must(json.Unmarshal(text, &more))
	if len(more) == 0 {
		t.Errorf("no case was tried in the root %s\n%s", root, &log)
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
