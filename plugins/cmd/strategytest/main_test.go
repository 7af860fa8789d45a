package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunnable checks that a file that cannot be started is reported once, in the system's words,
// and that a path is relative to the current folder.
func TestRunnable(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, mode := range map[string]os.FileMode{"mine": 0o755, "text": 0o644} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"mine": "", filepath.Join(".", "mine"): "", "text": "permission denied", "nosuch": "no such file or directory", "sh": "no such file or directory"} {
		if err := runnable(path); (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
