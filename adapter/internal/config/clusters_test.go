package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// TestClusters: each file of the folder is the configuration of another cluster, for which neither variables nor the own file
// count. Names that are no cluster's are none.
func TestClusters(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.yaml": "api: headb:77\n", "a-2.yaml": "", "bad.yaml": "apy: x\n", "-M.yaml": "", "B.yaml": "", "c.yml": "", ".yaml": "", "worse.yaml": "grace: -1s\n"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	t.Setenv("EVOSLURM_API", "unix:///own")
	c := Clusters{Dir: dir}
	names, err := c.Names()
	if want := []string{"a-2", "b", "bad", "worse"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v, want %q", names, err, want)
	}
	if other, err := c.Other("b"); err != nil || other.API != "headb:77" || other.Grace != Default().Grace {
		t.Errorf("b: %q, %v, %v", other.API, other.Grace, err)
	}
	if other, err := c.Other("a-2"); err != nil || other.API != Default().API {
		t.Errorf("a-2: %q, %v", other.API, err)
	}
	for name, want := range map[string]string{"bad": "unknown keys: apy", "worse": "grace", "none": "no file", "../b": "no file", "-M": "no file"} {
		if _, err := c.Other(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, none := range []Clusters{{}, {Dir: filepath.Join(dir, "missing")}} {
		if names, err := none.Names(); err != nil || names != nil {
			t.Errorf("%q: %q, %v", none.Dir, names, err)
		}
	}
}
