package slurmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// GPUs returns a gres.conf that gives each node of a list ("n[1-4]") n GPUs, for Options.Files.
// slurm.conf also needs GresTypes and the nodes' Gres (Options.NodeExtra). Slurm wants a device
// file for each GPU; links to /dev/zero suffice.
func GPUs(t testing.TB, nodes string, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		if err := os.Symlink("/dev/zero", filepath.Join(dir, fmt.Sprintf("gpu%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("AutoDetect=off\nNodeName=%s Name=gpu File=%s/gpu[0-%d]\n", nodes, dir, n-1)
}
