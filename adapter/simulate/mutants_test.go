package simulate

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var mutate = flag.Bool("mutants", false, "build and try the mutants, not only see that they can be")

// mutant is a line of the core that is replaced, and what would be wrong then.
type mutant struct{ name, reason, file, old, new string }

func mutants(t *testing.T) (all []mutant) {
	t.Helper()
	text, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n== ")[1:] {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[3], "-") || !strings.HasPrefix(lines[4], "+") {
			t.Fatalf("mutant %q", block)
		}
		all = append(all, mutant{lines[0], lines[1], filepath.Join("..", "core", lines[2]), lines[3][1:] + "\n", lines[4][1:] + "\n"})
	}
	return all
}

// TestMutants: small faults in the core are found by the histories or, where these do not
// show them, by storms. Without -mutants it sees only that each can still be put in.
func TestMutants(t *testing.T) {
	began := time.Now()
	for _, m := range mutants(t) {
		t.Run(m.name, func(t *testing.T) {
			text, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.old); n != 1 {
				t.Fatalf("%s has the line %d times, want once:\n%s", m.file, n, m.old)
			}
			if *mutate {
				m.try(t, strings.Replace(string(text), m.old, m.new, 1))
			}
		})
	}
	t.Logf("%v", time.Since(began).Round(time.Second))
}

// try builds the tests with the fault in and expects them to fail.
func (m mutant) try(t *testing.T, text string) {
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{changed: text, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("it cannot be built: %v\n%s", err, out)
	}
	for _, by := range [][]string{{"-test.run=TestHistories"}, {"-test.run=TestStorms", "-storm.seeds=30", "-storm.seed=1", "-storm.shrink=0"}} {
		if err := exec.Command(binary, append(by, "-test.timeout=120s")...).Run(); err != nil {
			t.Logf("found by %s", strings.TrimPrefix(by[0], "-test.run="))
			return
		}
	}
	t.Errorf("not found: %s", m.reason)
}
