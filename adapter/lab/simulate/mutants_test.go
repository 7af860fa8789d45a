package simulate

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var (
	mutate     = flag.Bool("mutants", false, "build and try the mutants, not only see that they can be")
	mutantsAll = flag.Bool("mutants.all", false, "ignore what found them last, and try all histories and storms")
)

// foundFile names for every mutant the history or storm that found it last. That one is played
// first, and all others only if it no longer finds the mutant. TestMutants writes the file.
const foundFile = "testdata/mutants_found.txt"

// mutant is a line of the core that is replaced, and what would be wrong then.
type mutant struct{ name, reason, file, old, new string }

func mutants(t *testing.T) (all []mutant) {
	t.Helper()
	text := must.Read(t, "testdata/mutants.txt")
	for _, block := range strings.Split(string(text), "\n== ")[1:] {
		lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
		if len(lines) != 5 || !strings.HasPrefix(lines[3], "-") || !strings.HasPrefix(lines[4], "+") {
			t.Fatalf("mutant %q", block)
		}
		all = append(all, mutant{lines[0], lines[1], filepath.Join("..", "..", "sidecar", "core", lines[2]), lines[3][1:] + "\n", lines[4][1:] + "\n"})
	}
	return all
}

// TestMutants checks that histories, or otherwise storms, find small faults in the core. Without
// -mutants, it only checks that each fault can still be applied.
func TestMutants(t *testing.T) {
	began := time.Now()
	found := foundLast(t)
	var saved sync.Mutex // of found and its file
	t.Cleanup(func() {
		t.Logf("%v, %v of processor time", time.Since(began).Round(time.Second), (processorTime(t, syscall.RUSAGE_SELF) + processorTime(t, syscall.RUSAGE_CHILDREN)).Round(time.Second))
	})
	for _, m := range mutants(t) {
		last := found[m.name]
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // a build links on one processor
			text := must.Read(t, m.file)
			if n := strings.Count(string(text), m.old); n != 1 {
				t.Fatalf("%s has the line %d times, want once:\n%s", m.file, n, m.old)
			}
			if *mutate {
				if by := m.try(t, strings.Replace(string(text), m.old, m.new, 1), last); by != last {
					saved.Lock()
					defer saved.Unlock()
					found[m.name] = by
					noteFound(t, found)
				}
			}
		})
	}
}

// noteFound writes foundFile.
func noteFound(t *testing.T, found map[string]string) {
	var text strings.Builder
	for _, m := range mutants(t) {
		if by := found[m.name]; by != "" {
			fmt.Fprintln(&text, m.name, by)
		}
	}
	must.OK(t, os.WriteFile(foundFile, []byte(text.String()), 0o644))
}

// foundLast reads foundFile.
func foundLast(t *testing.T) map[string]string {
	found := map[string]string{}
	text := must.Read(t, foundFile)
	for line := range strings.Lines(string(text)) {
		name, by, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = by
	}
	return found
}

// finds matches the failure of a history, or of a storm with its seed.
var finds = regexp.MustCompile(`--- FAIL: (TestHistories\w*/\S+)|seed (\d+): `)

// playedBy returns the arguments of the test binary that play what has found a mutant.
func playedBy(found string) []string {
	if seed, storm := strings.CutPrefix(found, "storm "); storm {
		return []string{"-test.run=^TestStorms$", "-storm.seeds=1", "-storm.shrink=0", "-storm.seed=" + seed}
	}
	test, history, _ := strings.Cut(found, "/")
	return []string{"-test.run=^" + test + "$/^" + history + "$"}
}

// try builds the tests with the fault and expects them to fail. It returns what failed, or "" if
// the run did not finish.
func (m mutant) try(t *testing.T, text, foundBy string) string {
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.file)
	must.OK(t, err)
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	must.OK(t, err)
	for path, content := range map[string]string{changed: text, overlay: string(replace)} {
		must.OK(t, os.WriteFile(path, []byte(content), 0o644))
	}
	binary := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("it cannot be built: %v\n%s", err, out)
	}
	all := [][]string{{"-test.run=^TestHistories$"}, {"-test.run=^TestHistoriesAtRest$"}, {"-test.run=^TestStorms$", "-storm.seeds=30", "-storm.seed=1", "-storm.shrink=0"}}
	if foundBy != "" && !*mutantsAll {
		all = slices.Insert(all, 0, playedBy(foundBy))
	}
	for _, by := range all {
		out, err := exec.Command(binary, append(by, "-test.failfast", "-test.timeout=10m")...).CombinedOutput()
		if err == nil {
			continue
		}
		if bytes.Contains(out, []byte("panic: test timed out after")) {
			t.Errorf("%s takes too long: nothing is found by that", by[0])
			return ""
		}
		t.Logf("found by %s", strings.TrimPrefix(by[0], "-test.run="))
		switch what := finds.FindSubmatch(out); {
		case what == nil:
			return ""
		case len(what[2]) > 0:
			return "storm " + string(what[2])
		default:
			return string(what[1])
		}
	}
	t.Errorf("not found: %s", m.reason)
	return ""
}
