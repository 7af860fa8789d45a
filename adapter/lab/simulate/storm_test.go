package simulate

import (
	"flag"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var (
	stormSeeds  = flag.Int("storm.seeds", 20, "storms of TestStorms")
	stormShrink = flag.Int("storm.shrink", 80, "how often a storm in which something is wrong is played to shrink it")
	stormSeed   = flag.Uint64("storm.seed", 0, "the first of them; 0: by chance")
)

// TestStorms plays random histories. It shrinks and reports a failing one.
func TestStorms(t *testing.T) {
	first := *stormSeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	t.Logf("storms from seed %d on", first)
	began, used := time.Now(), processorTime(t, syscall.RUSAGE_SELF)
	var next, failed, simulated atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(*stormSeeds) && failed.Load() < 5; i = next.Add(1) - 1 {
				seed := first + uint64(i)
				script := Storm(seed)
				lasted, err := play(script, io.Discard, playing{})
				simulated.Add(int64(lasted))
				if err != nil {
					failed.Add(1)
					small := Shrink(script, *stormShrink)
					var story strings.Builder
					again := Play(small, &story)
					t.Errorf("seed %d: %v\n\nshrunk:\n%s\nwhat comes of it:\n%s\n%v", seed, err, small, story.String(), again)
				}
			}
		})
	}
	all.Wait()
	used = processorTime(t, syscall.RUSAGE_SELF) - used
	hours := time.Duration(simulated.Load()).Hours()
	t.Logf("%d storms in %v: %.0f cluster-hours in %v of processor time, %.0f a minute of one core", *stormSeeds, time.Since(began).Round(time.Second), hours,
		used.Round(time.Second), hours/used.Minutes())
}

// processorTime returns what the process, or those that it has waited for, have used so far.
func processorTime(t *testing.T, who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
