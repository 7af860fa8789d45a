package crash_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	seeds    = flag.Int("crash.seeds", 0, "random fault runs beside those of testdata/seeds")
	fromSeed = flag.Uint64("crash.seed", 1, "the first seed of -crash.seeds")
)

// mostFaults bounds the faults of one run: a run must come to its end.
const mostFaults = 25

// TestFaults runs scenarios while commands fail in all ways of crash.Action
// and the sidecar is killed now and then, by seeds that are kept: all that failed
// once, and some that did not.
func TestFaults(t *testing.T) {
	runs := keptSeeds(t)
	names := []string{"merge", "companion", "chain", "cancel", "replan", "grow", "shrink"}
	for i := range *seeds {
		seed := *fromSeed + uint64(i)
		name := names[seed%uint64(len(names))]
		runs[name] = append(runs[name], seed)
	}
	for name := range runs {
		if !slices.ContainsFunc(scenarios, func(sc scenario) bool { return sc.name == name }) {
			t.Errorf("there is no scenario %q", name)
		}
	}
	for _, sc := range scenarios {
		if len(runs[sc.name]) == 0 {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, sc.options, healing)
			s.occupy()
			happened := 0
			for _, seed := range runs[sc.name] {
				plan := newFaults(seed, mostFaults)
				s.control.mu.Lock()
				s.control.faults = plan
				s.control.mu.Unlock()
				_, _, err := s.try(sc, 0)
				s.control.mu.Lock()
				s.control.faults = nil
				s.control.mu.Unlock()
				happened += mostFaults - plan.left
				fmt.Fprintf(os.Stderr, "%s seed %d: %d faults\n", sc.name, seed, mostFaults-plan.left)
				if err != nil {
					t.Errorf("%s with the faults of seed %d: %v\n%s", sc.name, seed, err, s.story())
					if err := s.clear(); err != nil {
						t.Fatalf("what the scenario left cannot be cleared: %v", err)
					}
				}
			}
			if happened == 0 {
				t.Error("no fault happened: choose another seed")
			}
		})
	}
}

// keptSeeds reads testdata/seeds: a scenario and a seed a line.
func keptSeeds(t *testing.T) map[string][]uint64 {
	t.Helper()
	f, err := os.Open("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs := map[string][]uint64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			t.Fatalf("testdata/seeds: %q", lines.Text())
		}
		seed, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %v", err)
		}
		runs[words[0]] = append(runs[words[0]], seed)
	}
	return runs
}
