package simulate

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evoslurm/evoslurm/adapter/job/place"
)

var (
	clusterSeeds = flag.Int("clusters.seeds", 6, "storms of TestTwoClusters")
	clusterSeed  = flag.Uint64("clusters.seed", 0, "the first of them; 0: by chance")
)

// TestTwoClusters plays storms on two clusters at a time, whose clocks differ. Users ask both sidecars where a job would run;
// answers come late and offers expire. Besides all that must hold in storms, in every other one nothing fails, and each job
// that is offered a start within a minute must start then.
func TestTwoClusters(t *testing.T) {
	first := *clusterSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	t.Logf("storms from seed %d on", first)
	binding := 0
	for i := range *clusterSeeds {
		seed := first + uint64(i)
		scripts, kept := twoClusters(seed)
		places, err := playBoth(scripts, kept, [2]io.Writer{io.Discard, io.Discard})
		binding += places
		if err != nil {
			var story [2]strings.Builder
			_, again := playBoth(scripts, kept, [2]io.Writer{&story[0], &story[1]})
			t.Errorf("go test -run TestTwoClusters ./adapter/lab/simulate -args -clusters.seeds=1 -clusters.seed=%d: %v\n\n%s\nwhat comes of it:\n%s\n\n%s\nwhat comes of it:\n%s\n%v",
				seed, err, scripts[0], story[0].String(), scripts[1], story[1].String(), again)
		}
	}
	if t.Logf("%d jobs came while their places were kept", binding); binding == 0 {
		t.Error("no job came while its place was kept")
	}
}

// playBoth plays two histories beside each other. It returns how many jobs came while their places were kept.
func playBoth(scripts [2]string, kept bool, out [2]io.Writer) (places int, err error) {
	var errs [2]error
	var seats [2]*seat
	var both sync.WaitGroup
	among := newClusters()
	for i := range scripts {
		seats[i] = &seat{of: among, which: i, kept: kept, places: map[string]asked{}}
		both.Go(func() {
			defer among.leave(i)
			_, errs[i] = play(scripts[i], out[i], playing{seat: seats[i]})
		})
	}
	both.Wait()
	for i, s := range seats {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("cluster %d: %w", i, errs[i])
		}
		for _, q := range s.places {
			if q.binding {
				places++
			}
		}
	}
	return places, errors.Join(errs[:]...)
}

// twoClusters makes two scripts. If kept, each job that comes while its place is kept must start as offered.
func twoClusters(seed uint64) (scripts [2]string, kept bool) {
	kept = seed%2 == 0
	users := &storming{Rand: rand.New(rand.NewPCG(seed, 62)), nodes: 4}
	var quiet [][2]time.Duration // when no stock job comes
	at := time.Minute + users.when(time.Minute)
	for i := range 3 + users.IntN(5) {
		name := fmt.Sprintf("grid%d", i)
		var profile []string
		for range 1 + users.IntN(3) {
			seconds := 60 + users.IntN(300)
			profile = append(profile, fmt.Sprintf("%d@%ds", 1+users.IntN(4), seconds))
			users.lasts(time.Duration(seconds) * time.Second)
		}
		text := fmt.Sprintf("%s %s user=%s", name, strings.Join(profile, ","), users.pick("alice", "bob"))
		wait := 1500*time.Millisecond + users.when(4*time.Second)
		if users.IntN(4) == 0 { // the offer expires
			wait = 20 * time.Second
		}
		drive := users.pick("merge", "companion")
		users.at(at, "ask %s minutes=40 drive=%s", text, drive)
		users.at(at+waits+time.Millisecond, "choose %s %s", name, users.pick(place.Names()...))
		users.at(at+wait, "send %s limit=40m drive=%s", text, drive)
		quiet = append(quiet, [2]time.Duration{at - around, at + wait + around})
		at += wait + 30*time.Second + users.when(5*time.Minute)
	}
	for i := range scripts {
		base := Storm(2*seed + uint64(i))
		if strings.Contains(base, " reserve course ") { // of all nodes, for others
			base = Storm(2*seed + uint64(i) + 1)
		}
		if kept {
			base = calmSite(rand.New(rand.NewPCG(seed, uint64(63+i))), quiet)
		}
		scripts[i] = joined(base, users)
	}
	return scripts, kept
}

// around is how long before a question, and after its job, no stock job comes.
const around = 10 * time.Second

// calmSite makes a cluster on which nothing fails and all jobs last as they said. No stock job comes while it must be quiet.
func calmSite(chance *rand.Rand, quiet [][2]time.Duration) string {
	g := &storming{Rand: chance, nodes: 4 + chance.IntN(9)}
	for i := range 3 + g.IntN(8) {
		at := g.when(storm)
		minutes, stock := 2+g.IntN(8), g.IntN(2) == 0
		if stock && slices.ContainsFunc(quiet, func(q [2]time.Duration) bool { return q[0] <= at && at <= q[1] }) {
			continue // a place is not kept from it
		}
		if stock {
			g.at(at, "stock stock%d %d %dm %ds user=%s", i, 1+g.IntN(g.nodes), minutes, 60*minutes-1, g.pick("alice", "bob"))
		} else {
			g.at(at, "submit own%d %d@%dm,%d@%dm user=%s", i, 1+g.IntN(g.nodes), minutes, 1+g.IntN(g.nodes), 1+g.IntN(minutes), g.pick("alice", "bob"))
		}
	}
	for i, q := range quiet { // evolving jobs come between a question and its job: the place is kept from them
		if between := q[1] - q[0] - 2*around; g.IntN(2) == 0 {
			g.at(q[0]+around+g.when(between), "submit rival%d %d@%dm user=%s", i, 1+g.IntN(g.nodes), 2+g.IntN(8), g.pick("alice", "bob"))
		}
	}
	script := fmt.Sprintf("cluster nodes=%d accounting merge\nrandom %d\nconfig poll=1s\n0s ahead %s\n", g.nodes, g.Uint64(), g.pick("0s", "90s", "-7s", "4m"))
	slices.SortStableFunc(g.lines, func(a, b timed) int { return int(a.at - b.at) })
	for _, l := range g.lines {
		script += fmt.Sprintf("%v %s\n", l.at.Round(time.Millisecond), l.text)
	}
	return script + fmt.Sprintf("%v end clean\n", storm+calm)
}

// joined puts what users do into a script, and lets it last long enough for that.
func joined(script string, users *storming) string {
	var head []string
	lines := slices.Clone(users.lines)
	for line := range strings.Lines(script) {
		word, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		at, err := time.ParseDuration(word)
		switch {
		case err != nil:
			head = append(head, strings.TrimSpace(line))
		case strings.HasPrefix(text, "end"):
			lines = append(lines, timed{at + users.work, text})
		default:
			lines = append(lines, timed{at, text})
		}
	}
	slices.SortStableFunc(lines, func(a, b timed) int { return int(a.at - b.at) })
	for _, l := range lines {
		head = append(head, fmt.Sprintf("%v %s", l.at.Round(time.Millisecond), l.text))
	}
	return strings.Join(head, "\n") + "\n"
}
