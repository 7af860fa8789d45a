package simulate

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	twoSeeds = flag.Int("two.seeds", 6, "storms of TestTwoHosts")
	twoSeed  = flag.Uint64("two.seed", 0, "the first of them; 0: by chance")
)

// twoHosts makes a storm on two hosts: what kills the sidecar kills the one that acts, and hosts are stopped and cut
// off, together or one of them. It leaves slurmctld at its usual pace: a slower one keeps no lease.
func twoHosts(seed uint64) string {
	g := &storming{Rand: rand.New(rand.NewPCG(seed, 40))}
	skew := func() string { return g.pick("0s", "0s", "300ms", "900ms", "7s", "-7s", "2m", "-2m", "4m", "-4m") }
	late := 20 * time.Second
	var head, rest []string
	for line := range strings.Lines(Storm(seed)) {
		line = strings.TrimSuffix(line, "\n")
		at, what, _ := strings.Cut(line, " ")
		t, err := time.ParseDuration(at)
		switch what {
		case "kill", "lose", "takeover":
			line = at + " die acts"
		case "start":
			line = at + " again"
		case "crash": // what slurmctld forgets then, no command of the lease may outlast
			late = time.Second
		}
		switch word, _, _ := strings.Cut(what, " "); {
		case word == "ship" || word == "answers" || line == "rest":
		case err != nil:
			head = append(head, line)
		case t < storm:
			g.at(t, "%s", strings.TrimPrefix(line, at+" "))
		default:
			rest = append(rest, line)
		}
	}
	for range 2 + g.IntN(8) {
		t, lasts := g.when(storm), g.pick("2s", "8s", "14s", "25s", "40s", "90s")
		switch host := g.pick("acts", "acts", "acts", "waits", "both"); g.IntN(4) {
		case 0:
			g.at(t, "die %s", host)
			g.at(t+g.when(2*time.Minute), "again")
		case 1:
			g.at(t, "cut %s %s", host, lasts)
		default:
			g.at(t, "freeze %s %s", host, lasts)
		}
	}
	slices.SortStableFunc(g.lines, func(a, b timed) int { return int(a.at - b.at) })
	script := append(head, fmt.Sprintf("hosts %d late=%v skew=%v,%v", seed, late, skew(), skew()))
	for _, l := range g.lines {
		script = append(script, fmt.Sprintf("%v %s", l.at, l.text))
	}
	script = append(script, fmt.Sprintf("%v calm", storm))
	end := slices.IndexFunc(rest, func(l string) bool { return strings.Contains(l, " end clean") })
	dies := []string{fmt.Sprintf("%v die acts", storm+2*time.Minute), fmt.Sprintf("%v again", storm+3*time.Minute)}
	if seed%9 == 7 { // everything is released meanwhile
		dies = nil
	}
	return strings.Join(slices.Concat(script, rest[:end], dies, rest[end:]), "\n") + "\n"
}

// TestTwoHosts plays storms on two hosts: besides all that must hold in storms, never two sidecars may act, no command
// of one arrives after one of the next, and the next acts within 30 s.
func TestTwoHosts(t *testing.T) {
	first := *twoSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	var next, failed atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(*twoSeeds) && failed.Load() < 5; i = next.Add(1) - 1 {
				var its []time.Duration
				script := twoHosts(first + uint64(i))
				_, err := play(script, io.Discard, playing{took: &its})
				mu.Lock()
				took = append(took, its...)
				mu.Unlock()
				if err != nil {
					failed.Add(1)
					small := Shrink(script, *stormShrink)
					var story strings.Builder
					again := Play(small, &story)
					t.Errorf("go test -run TestTwoHosts ./adapter/lab/simulate -args -two.seeds=1 -two.seed=%d: %v\n\nshrunk:\n%s\nwhat comes of it:\n%s\n%v", first+uint64(i), err, small, story.String(), again)
				}
			}
		})
	}
	all.Wait()
	if slices.Sort(took); len(took) > 0 {
		t.Logf("%d storms from seed %d on, %d takeovers: half of them within %v, all within %v", *twoSeeds, first, len(took), took[len(took)/2], took[len(took)-1])
	}
}

// TestTwoHostsFind: it is found if the fence is missing, or if the lease is not looked at before commands.
func TestTwoHostsFind(t *testing.T) {
	for _, missing := range []string{"fence", "lease", ""} {
		found := ""
		for seed := 1; seed <= 20 && found == ""; seed++ {
			script := fmt.Sprintf("cluster nodes=6 accounting merge\nhosts %d\n", seed)
			for i := range 3 {
				script += fmt.Sprintf("0s submit app%d %s1@9s limit=60m\n", i, strings.Repeat("1@9s,2@9s,", 20))
			}
			for at := time.Minute; at < 6*time.Minute; at += time.Minute {
				script += fmt.Sprintf("%v freeze acts 40s\n", at)
			}
			_, err := play(script+"7m end\n", io.Discard, playing{mutant: missing, rough: true})
			if err != nil && strings.Contains(err.Error(), "arrives after a command of turn") {
				found = fmt.Sprintf("seed %d: %v", seed, err)
			}
		}
		if found == "" && missing != "" || found != "" && missing == "" {
			t.Errorf("the %s is missing: %q", missing, found)
		}
		t.Logf("without the %s: %s", missing, found)
	}
}
