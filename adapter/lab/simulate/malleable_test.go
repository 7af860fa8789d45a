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

// grace is the grace period of the jobs, plus the time until a stock job is seen waiting, nodes are
// given back, and Slurm schedules again (bf_interval).
const (
	grace  = 20 * time.Second
	beside = 30 * time.Second
)

var (
	stockSeed  = flag.Uint64("stock.seed", 0, "the first workload of TestStockJobsLoseNothing and TestStockJobsInStorms; 0: by chance")
	stockSeeds = flag.Uint64("stock.seeds", 6, "how many of them there are")
)

// besides holds malleable jobs and stock jobs, in a history's words. All stock jobs want the same
// number of nodes, so that none overtakes another.
type besides struct{ apps, stock []string }

func newBesides(chance *rand.Rand) (b besides) {
	for i := range 1 + chance.IntN(3) {
		b.apps = append(b.apps, fmt.Sprintf("%ds submit app%d 1-%d@%dm user=bob grace=20s says=%s", i, i, 2+chance.IntN(7), 40+chance.IntN(20),
			[]string{"all", "mute,all", "none,all,all+15s", "all,mute", "1,2,all"}[chance.IntN(5)]))
	}
	nodes, at := 1+chance.IntN(4), 60
	for i := range 12 {
		at += chance.IntN(240)
		minutes := 2 + chance.IntN(6)
		b.stock = append(b.stock, fmt.Sprintf("%ds stock stock%d %d %dm %ds", at, i, nodes, minutes+1, 60*minutes-chance.IntN(60)))
	}
	return b
}

// rigid returns the malleable jobs at their smallest sizes.
func (b besides) rigid() besides {
	rigid := make([]string, len(b.apps))
	for i, a := range b.apps {
		words := strings.Fields(a)
		_, lasts, _ := strings.Cut(words[3], "@")
		rigid[i] = strings.Join([]string{words[0], words[1], words[2], "1@" + lasts, words[4]}, " ")
	}
	return besides{rigid, b.stock}
}

// begin plays them with other events and returns when each stock job began.
func (b besides) begin(t *testing.T, config string, beside ...string) map[string]time.Duration {
	t.Helper()
	began := map[string]time.Duration{}
	lines := slices.Concat(b.apps, b.stock, beside)
	slices.SortStableFunc(lines, func(x, y string) int { return int(atOf(x) - atOf(y)) })
	script := strings.Join(slices.Concat([]string{"cluster nodes=8 accounting merge", config}, lines, []string{"2h end"}), "\n")
	if _, err := play(script, io.Discard, playing{began: began}); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	if len(began) != len(b.stock) {
		t.Fatalf("of the stock jobs these have begun: %v\n%s", began, script)
	}
	return began
}

// atOf returns when a line of a history happens.
func atOf(line string) time.Duration {
	text, _, _ := strings.Cut(line, " ")
	at, _ := time.ParseDuration(text)
	return at
}

// later returns how much later each stock job begins with malleable jobs than without.
func later(with, without map[string]time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for name, at := range without {
		all[name] = with[name] - at
	}
	return all
}

// workloads runs a subtest for each of some random workloads.
func workloads(t *testing.T, test func(t *testing.T, seed uint64)) {
	first := *stockSeed
	if first == 0 {
		first = rand.Uint64N(1 << 32)
	}
	for seed := first; seed < first+*stockSeeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			test(t, seed)
		})
	}
}

// TestStockJobsLoseNothing checks that no stock job starts later beside malleable jobs than if
// these kept to their smallest sizes, except for the grace period of jobs that give way, whatever
// they answer to offers.
func TestStockJobsLoseNothing(t *testing.T) {
	workloads(t, func(t *testing.T, seed uint64) {
		b := newBesides(rand.New(rand.NewPCG(seed, 3)))
		var most time.Duration
		for name, late := range later(b.begin(t, ""), b.rigid().begin(t, "")) {
			most = max(most, late)
			if late > grace+beside {
				t.Errorf("%s began %v later than without malleable jobs", name, late)
			}
		}
		t.Logf("%d malleable jobs, %d stock jobs: at most %v later", len(b.apps), len(b.stock), most)
	})
}

// trouble is a fault of the sidecar or of one of its commands, and how long it may keep the sidecar
// from making malleable jobs give way.
type trouble struct {
	lines []string
	costs time.Duration
}

func newTrouble(chance *rand.Rand) trouble {
	at := time.Duration(30+chance.IntN(40*60)) * time.Second
	down := time.Duration(1+chance.IntN(180)) * time.Second
	line := func(at time.Duration, what string) string { return fmt.Sprintf("%v %s", at, what) }
	switch chance.IntN(3) {
	case 0:
		return trouble{[]string{line(at, "kill"), line(at+down, "start")}, down + recovers}
	case 1:
		return trouble{[]string{line(at, "lose"), line(at+down, "start")}, down + recovers}
	}
	what := []string{"drop", "lost", "late=3s", "slow=2s", "late=40s"}[chance.IntN(5)]
	return trouble{[]string{line(at, "fault "+what)}, 40*time.Second + recovers}
}

// recovers is how long the sidecar takes to see the cluster again, or to retry a command.
const recovers = 15 * time.Second

// TestStockJobsInStorms checks the same while the sidecar is killed, loses its database, and has
// commands that fail or are late. These faults do not concern stock jobs: the same happens beside
// rigid jobs. A stock job may be later by the grace period and the time for which the sidecar could
// do nothing. Storms that take nodes and change jobs are not compared: after the first difference,
// they are two different storms.
func TestStockJobsInStorms(t *testing.T) {
	workloads(t, func(t *testing.T, seed uint64) {
		chance := rand.New(rand.NewPCG(seed, 4))
		b := newBesides(chance)
		var lines []string
		cost := map[time.Duration]time.Duration{}
		for range 1 + chance.IntN(4) {
			one := newTrouble(chance)
			lines = append(lines, one.lines...)
			cost[atOf(one.lines[0])] += one.costs
		}
		with, without := b.begin(t, "", lines...), b.rigid().begin(t, "", lines...)
		var most time.Duration
		for name, late := range later(with, without) {
			allowed := grace + beside
			for at, costs := range cost {
				if at < with[name] {
					allowed += costs
				}
			}
			most = max(most, late)
			if late > allowed {
				t.Errorf("%s began %v later than without malleable jobs, %v are allowed:\n%s", name, late, allowed, strings.Join(slices.Concat(b.apps, b.stock, lines), "\n"))
			}
		}
		t.Logf("%d malleable jobs, %d stock jobs, %v: at most %v later", len(b.apps), len(b.stock), lines, most)
	})
}

// TestStockJobsWait checks that malleable jobs that keep what they have (PRA) do delay stock jobs,
// so that the tests above can fail.
func TestStockJobsWait(t *testing.T) {
	b := besides{[]string{"0s submit app 1-8@50m user=bob grace=20s says=all"}, []string{"2m stock stock0 4 5m 4m"}}
	late := later(b.begin(t, "config approach=pra"), b.rigid().begin(t, ""))["stock0"]
	if late < 40*time.Minute {
		t.Errorf("it began %v later", late)
	}
}
