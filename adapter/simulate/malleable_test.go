package simulate

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// grace is that of the jobs of TestStockJobsLoseNothing, and beside it what it takes until a stock job is
// seen to wait, nodes are given back and Slurm looks at its queue (bf_interval).
const (
	grace  = 20 * time.Second
	beside = 30 * time.Second
)

var (
	stockSeed  = flag.Uint64("stock.seed", 0, "the first workload of TestStockJobsLoseNothing; 0: by chance")
	stockSeeds = flag.Uint64("stock.seeds", 6, "how many of them there are")
)

// TestStockJobsLoseNothing: with malleable jobs beside them no stock job starts later than if these kept to
// their smallest sizes, but for the grace of those that give way; whatever they say to offers. All stock
// jobs want as many nodes, so that none overtakes another.
func TestStockJobsLoseNothing(t *testing.T) {
	first := *stockSeed
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	for seed := first; seed < first+*stockSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(seed, 3))
			apps, stock := []string{}, []string{}
			for i := range 1 + chance.IntN(3) {
				apps = append(apps, fmt.Sprintf("%ds submit app%d 1-%d@%dm user=bob grace=20s says=%s", i, i, 2+chance.IntN(7), 40+chance.IntN(20),
					[]string{"all", "mute,all", "none,all,all+15s", "all,mute", "1,2,all"}[chance.IntN(5)]))
			}
			nodes, at := 1+chance.IntN(4), 60
			for i := range 12 {
				at += chance.IntN(240)
				minutes := 2 + chance.IntN(6)
				stock = append(stock, fmt.Sprintf("%ds stock stock%d %d %dm %ds", at, i, nodes, minutes+1, 60*minutes-chance.IntN(60)))
			}
			play := func(apps []string) map[string]time.Duration {
				began := map[string]time.Duration{}
				script := strings.Join(slices.Concat([]string{"cluster nodes=8 accounting merge"}, apps, stock, []string{"2h end"}), "\n")
				if _, err := play(script, io.Discard, playing{began: began}); err != nil {
					t.Fatal(err)
				}
				return began
			}
			rigid := make([]string, len(apps))
			for i, a := range apps {
				words := strings.Fields(a)
				_, lasts, _ := strings.Cut(words[3], "@")
				rigid[i] = strings.Join([]string{words[0], words[1], words[2], "1@" + lasts, words[4]}, " ")
			}
			without, with := play(rigid), play(apps)
			if len(without) != len(stock) || len(with) != len(stock) {
				t.Fatalf("%d and %d of %d stock jobs have begun", len(without), len(with), len(stock))
			}
			var most time.Duration
			for name, at := range without {
				most = max(most, with[name]-at)
				if late := with[name] - at; late > grace+beside {
					t.Errorf("%s began %v later than without malleable jobs", name, late)
				}
			}
			t.Logf("%d malleable jobs, %d stock jobs of %d nodes: at most %v later", len(apps), len(stock), nodes, most)
		})
	}
}
