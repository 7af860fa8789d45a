package slurmctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestToken checks how a token is asked for, and that a present one, which may have expired, is not used for that.
func TestToken(t *testing.T) {
	t.Setenv("SLURM_JWT", "old")
	c := &Client{Dir: t.TempDir()}
	for script, want := range map[string]string{
		`[ "$*" = "token lifespan=60" ] && [ -z "$SLURM_JWT" ] && echo SLURM_JWT=a.b.c`: "",
		`echo Error fetching token`:                             "is not understood",
		`echo "Unable to contact slurm controller" >&2; exit 1`: "Unable to contact",
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, "scontrol"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		token, err := c.Token(t.Context(), time.Minute)
		if want == "" && (token != "a.b.c" || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", script, token, err)
		}
	}
}
