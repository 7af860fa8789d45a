//go:build fidelity

package slurmsim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/evoslurm/evoslurm/slurmctl/slurmtest"
)

var (
	workloads = flag.Uint64("fidelity.workloads", 10, "how many workloads TestFidelityRecord runs on each of its two clusters")
	firstSeed = flag.Uint64("fidelity.first", 0, "seed of the first")
	again     = flag.Bool("fidelity.again", true, "run each twice")
)

// TestFidelityRecord plays random workloads on real clusters of 8 and 16 nodes, each twice, and
// records the outcomes in -fidelity.recordings. It takes an hour.
func TestFidelityRecord(t *testing.T) {
	for _, nodes := range []int{8, 16} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			cluster := slurmtest.Start(t, slurmtest.Options{Nodes: nodes})
			for seed := *firstSeed; seed < *firstSeed+*workloads; seed++ {
				for _, run := range []string{"a", "b"} {
					if run == "b" && !*again {
						break
					}
					p := played{Seed: seed, Nodes: nodes}
					w := real(t, cluster)
					w.play(&p, workload(seed, nodes))
					w.clean(cluster)
					text, err := json.Marshal(p)
					w.must(err)
					w.must(os.WriteFile(filepath.Join(*recordings, fmt.Sprintf("%d-%d%s.json", nodes, seed, run)), text, 0o644))
				}
			}
		})
	}
}
