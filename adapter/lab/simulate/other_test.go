package simulate

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/sidecar/store/row"
)

var (
	otherSeeds = flag.Uint64("other.seeds", 8, "pairs of storms of TestOtherDatabase")
	otherSeed  = flag.Uint64("other.seed", 0, "the first of them; 0: by chance")
)

// TestOtherDatabase gives a sidecar the database of another cluster, where jobs of the same numbers evolve, holds are kept, and
// commands are under way. It changes no job that is not its own, and all that must hold in storms does.
func TestOtherDatabase(t *testing.T) {
	first := *otherSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	active, nextDay := 0, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	seeds := []uint64{
		238414267332, // a job ends just after a poll, and a stock job waits for its nodes
		668181696316, // a job's user is denied when the database is lost
	}
	for i := range *otherSeeds {
		seeds = append(seeds, first+i)
	}
	for _, seed := range seeds {
		var left, after Database
		if _, err := play(until20m(Storm(seed)), io.Discard, playing{left: &left}); err != nil {
			t.Fatalf("seed %d: the other cluster: %v", seed, err)
		}
		if _, err := play(Storm(seed+1<<41), io.Discard, playing{other: left.clone(), start: nextDay, left: &after}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		for id, j := range left.Jobs {
			if j.Job.State == row.Ended {
				continue
			}
			active++
			if now, kept := after.Jobs[id]; kept && now.Job.State != row.Ended { // a storm may lose the database
				t.Errorf("seed %d: job %d of the other cluster is %s", seed, j.Job.SlurmID, now.Job.State)
			}
		}
	}
	if t.Logf("%d jobs of the other clusters", active); active == 0 {
		t.Error("the other clusters had no job")
	}
}

// until20m returns what a script does within 20 minutes.
func until20m(script string) string {
	const end = 20 * time.Minute
	var lines strings.Builder
	for line := range strings.Lines(script) {
		at, _, _ := strings.Cut(line, " ")
		if t, err := time.ParseDuration(at); err != nil || t < end {
			lines.WriteString(line)
		}
	}
	return lines.String() + fmt.Sprintf("%v end\n", end)
}
