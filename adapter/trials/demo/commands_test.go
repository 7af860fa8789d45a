package demo

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCommandIn: commands are found as they are built, in one folder, and as packages install them.
func TestCommandIn(t *testing.T) {
	root := t.TempDir()
	want := map[string]string{"evosctl": "usr/bin/evosctl", "evoslurmd": "usr/sbin/evoslurmd", "strategies/search": "usr/libexec/evoslurm/strategies/search"}
	for _, file := range want {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range want {
		if got := commandIn(filepath.Join(root, "usr/bin"), name); got != filepath.Join(root, file) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := commandIn(root, "evosrun"); got != filepath.Join(root, "evosrun") {
		t.Errorf("one that is missing: %s", got)
	}
}
