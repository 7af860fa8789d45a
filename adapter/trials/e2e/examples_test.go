package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

// TestExamples: what contrib/examples shows works as it is there, through four resizes, by
// merges and by companions.
func TestExamples(t *testing.T) {
	s := newSite(t, slurmtest.Options{Accounting: true, PermitJobExpansion: true}, nil)
	folders, err := filepath.Glob("../../../contrib/examples/*")
	s.must(err)
	for _, folder := range folders {
		for _, name := range []string{"README.md", "job.sh"} {
			if _, err := os.Stat(folder + "/" + name); err != nil {
				t.Error(err)
			}
		}
		s.must(os.CopyFS(s.Dir+"/out", os.DirFS(folder)))
		s.must(os.Remove(s.Dir + "/out/README.md"))
		if text, err := os.ReadFile(folder + "/job.sh"); err != nil || strings.Count(string(text), "\n") > 20 {
			t.Errorf("%s: a script of at most twenty lines: %v", folder, err)
		}
		s.must(os.Rename(s.Dir+"/out/job.sh", s.Dir+"/out/"+filepath.Base(folder)+".sh"))
	}
	const profile = "--profile=1@5s,3@5s,2@6s,4@5s,1@"
	ids := map[string][]string{}
	for _, drive := range []string{"merge", "companion"} {
		ids["bag"] = append(ids["bag"], s.submit("--drive="+drive, profile+"2m", "--export=ALL,TASKS=120,DRAIN=2s", "bag.sh"))
		ids["checkpoint"] = append(ids["checkpoint"], s.submit("--drive="+drive, profile+"5s", "--export=ALL,ITERATIONS=200", "checkpoint.sh"))
	}
	last := func(id string) string {
		out := messages(s.output(id))
		return out[len(out)-1]
	}
	for _, id := range ids["bag"] {
		sum := 0
		for i := range 120 {
			sum += i * i
		}
		if got, want := last(id), fmt.Sprintf("120 done, 0 left, sum %d, on ", sum); !strings.HasPrefix(got, want) {
			t.Errorf("bag: %q, want %q", got, want)
		}
	}
	s.must(os.Mkdir(s.Dir+"/alone", 0o755))
	var alone string
	for _, iterations := range []string{"1000", "0"} {
		cmd := exec.Command("python3", s.Dir+"/out/solve.py", iterations)
		cmd.Dir = s.Dir + "/alone"
		out, err := cmd.Output()
		s.must(err)
		alone = strings.TrimSpace(string(out))
	}
	for _, id := range ids["checkpoint"] {
		got := last(id)
		if got != alone || !strings.HasSuffix(got, "after 1000 iterations") {
			t.Errorf("checkpoint: %q, and %q without resizing", got, alone)
		}
		if out := s.output(id); !slices.Contains(out, "rank 3 of 4") {
			t.Errorf("checkpoint: it never ran on four nodes: %q", out)
		}
	}
	s.stop(syscall.SIGTERM)
}
