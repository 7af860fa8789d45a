package simulate

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/evoslurm/evoslurm/adapter/internal/config"
	"github.com/evoslurm/evoslurm/planner"
	"github.com/evoslurm/evoslurm/slurmctl/slurmsim"
	"github.com/evoslurm/evoslurm/slurmctl/slurmtest/must"
)

var rewrite = flag.Bool("rewrite", false, "write what comes of the histories into their files")

const below = "\n----\n"

// histories runs a subtest for each of testdata/histories.
func histories(t *testing.T, test func(t *testing.T, file, script, want string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text := must.Read(t, file)
			script, want, _ := strings.Cut(string(text), below)
			test(t, file, script, want)
		})
	}
}

// TestHistoriesAtRest checks that the sidecar does the same if polls without effect are skipped.
func TestHistoriesAtRest(t *testing.T) {
	histories(t, func(t *testing.T, _, script, want string) {
		var got strings.Builder
		if _, err := play(script, &got, playing{skip: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("with all polls (-) and without some (+):\n%s", diff)
		}
	})
}

// TestRestAfterRestart checks that a queued job does not keep a restarted sidecar from resting.
func TestRestAfterRestart(t *testing.T) {
	h, set := newHistory(io.Discard), setting{config: config.Default()}
	must.OK(t, set.read("cluster nodes=2\n0s stock other 2 60m 50m\n10s submit a 2@10m\n1m kill\n1m start\n40m end"))
	cluster := slurmsim.New(set.options)
	defer cluster.Close()
	noX, _ := planner.StrategyByName("noX")
	h.s = &Sidecar{Cluster: cluster, Database: NewDatabase(), Config: set.config, Strategy: noX, Watch: h.watch, Skip: true}
	h.s.Start()
	if err := h.playAll(set.events); err != nil || h.s.Polls > 200 {
		t.Errorf("%d polls, %d skipped: %v", h.s.Polls, h.s.Skipped, err)
	}
}

// TestHistories plays testdata/histories. The sidecar must do what is written there, and replaying
// its recording must give the same.
func TestHistories(t *testing.T) {
	histories(t, func(t *testing.T, file, script, want string) {
		var got strings.Builder
		r := recording{dir: t.TempDir()}
		if _, err := play(script, &got, playing{record: r.life(t)}); err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			must.OK(t, os.WriteFile(file, []byte(strings.TrimRight(script, "\n")+below+got.String()), 0o644))
			return
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("-want +got; go test ./adapter/lab/simulate -rewrite, if it is meant:\n%s", diff)
			return
		}
		r.replays(t)
	})
}
