package slurmctl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

// releaseShim is a Slurm of the release that the file "release" names. Its squeue tells in the file
// "asked" by which kind of format it was asked, and refuses columns of later releases.
const releaseShim = `at=$(dirname "$0"); release=$(cat "$at/release")
case "${0##*/} $*" in
"squeue --version") echo "slurm $release.1" ;;
scontrol*) echo "SLURM_VERSION = $(cat "$at/slurmctld").1" ;;
*)
	case "$release:$SQUEUE_FORMAT$SQUEUE_FORMAT2" in
	22.05:*ExcNodes:*|24.11:*Exclusive:*) echo "squeue: error: Invalid job format specification" >&2; exit 1 ;;
	esac
	echo "$release ${SQUEUE_FORMAT:+-o}${SQUEUE_FORMAT2:+-O}" >>"$at/asked" ;;
esac
`

// TestUpgrade: Slurm is upgraded below a client, whose columns follow.
func TestUpgrade(t *testing.T) {
	c := stand(t, "squeue", releaseShim)
	var renewed []string
	c.Renewed = func(before, now string) { renewed = append(renewed, before+" to "+now) }
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(c.Dir, name)
		must.OK(t, errors.Join(os.WriteFile(path+".new", []byte(text), 0o755), os.Rename(path+".new", path)))
	}
	look := func(want string) {
		t.Helper()
		if _, err := c.Jobs(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked, _ := os.ReadFile(filepath.Join(c.Dir, "asked"))
		if lines := strings.Fields(string(asked)); strings.Join(lines[len(lines)-2:], " ") != want {
			t.Errorf("squeue was asked as %q, want %q", lines[len(lines)-2:], want)
		}
	}
	write("scontrol", "#!/bin/sh\n"+releaseShim)
	write("release", "22.05")
	write("slurmctld", "22.05")
	look("22.05 -o")
	calls := c.Calls()
	look("22.05 -o")
	if c.Calls() != calls+1 {
		t.Errorf("%d commands for one query", c.Calls()-calls)
	}

	// The package's file goes, and comes again.
	must.OK(t, os.Remove(filepath.Join(c.Dir, "squeue")))
	if _, err := c.Jobs(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "squeue") {
		t.Errorf("without squeue: %v", err)
	}
	write("release", "24.11")
	write("squeue", "#!/bin/sh\n"+releaseShim)
	look("24.11 -O")

	// A wrapper script stays, and other commands are behind it: slurmctld's release is a hint.
	write("slurmctld", "22.05") // an older one is noticed, too
	write("release", "22.05")
	if _, err := c.Config(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("22.05 -o")

	// Without a hint, columns that are refused are one.
	write("release", "26.05")
	c.distrust()
	look("26.05 -O")
	write("release", "24.11")
	if _, err := c.Jobs(t.Context()); err == nil {
		t.Error("columns of 26.05 were not refused")
	}
	look("24.11 -O")
	if want := []string{"22.05.1 to 24.11.1", "24.11.1 to 22.05.1", "22.05.1 to 26.05.1", "26.05.1 to 24.11.1"}; !slices.Equal(renewed, want) {
		t.Errorf("renewed: %q", renewed)
	}
}

// TestHalfUpgraded: what commands say while Slurm is upgraded is no refusal.
func TestHalfUpgraded(t *testing.T) {
	for _, said := range []string{
		"squeue: error while loading shared libraries: libslurmfull.so: cannot open shared object file: No such file or directory",
		"scontrol: error: Incompatible Slurm plugin /usr/lib/slurm/auth_munge.so version (24.11.5)",
		"slurm_load_jobs error: Incompatible versions of client and server code",
	} {
		c := stand(t, "squeue", "case $1 in --version) echo slurm 22.05.8 ;; *) echo '"+said+"' >&2; exit 1 ;; esac\n")
		if _, err := c.Jobs(t.Context()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%q: %v", said, err)
		}
	}
}
