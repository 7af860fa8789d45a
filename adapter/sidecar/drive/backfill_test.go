package drive

import (
	"testing"
	"time"
)

// TestBackfill: what can wait keeps away from the backfill scheduler, and asks no more
// often than it has to.
func TestBackfill(t *testing.T) {
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	b := &backfill{Rhythm: Rhythm{Interval: 30 * time.Second}}
	is := func(seconds float64, rests, known bool) {
		t.Helper()
		if r, k := b.rests(at(seconds)); r != rests || k != known {
			t.Errorf("after %v s: rests %v, known %v", seconds, r, k)
		}
	}
	is(0, true, false)
	b.learn(at(0), true, at(-40))
	is(0.4, false, true)
	is(0.6, true, false)
	b.learn(at(0.6), true, at(-40))
	b.learn(at(1.2), false, at(-1)) // sdiag has it end too early
	is(1.2, true, true)
	is(30.5, true, true)
	is(31, false, true) // about to begin
	is(33.5, false, true)
	is(33.7, true, false) // it did not
	b.learn(at(34), false, at(0.6))
	is(34, true, false)
	b.learn(at(40), false, at(4000)) // slurmctld's clock is ahead
	is(69, true, true)
	is(71, false, true)
	is(74, true, false)
}
