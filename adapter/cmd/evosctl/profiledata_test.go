package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// The traces of docs/data give the profiles that their README says.
func TestTracesOfDocs(t *testing.T) {
	folder := "../../../docs/data/"
	rows := regexp.MustCompile("(?m)^\\| `(\\S+\\.txt)` .*\\| `([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(must.Read(t, folder+"README.md")), -1)
	files, err := filepath.Glob(folder + "*.txt")
	if err != nil || len(rows) != len(files) || len(rows) == 0 {
		t.Fatalf("%d rows for %d traces, %v", len(rows), len(files), err)
	}
	for _, row := range rows {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"profile", "-q", "--from=" + folder + row[1]}, strings.Fields(row[2])...))
		if err := root.Execute(); err != nil || strings.TrimSpace(out.String()) != row[3] {
			t.Errorf("%s, %s: %s, %v, and the README says %s", row[1], row[2], out.String(), err, row[3])
		}
	}
}
