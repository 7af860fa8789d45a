package msg

import (
	"testing"
	"time"
)

// TestAllowance checks how many chores may come in a time after a full allowance was used up.
func TestAllowance(t *testing.T) {
	for _, c := range []struct {
		share   float64
		seconds int
		want    int
	}{{0.01, 0, 0}, {0.01, 3, 0}, {0.01, 4, 1}, {0.01, 60, 15}, {0.02, 60, 30}, {0.001, 60, 1}, {0.01, 3600, choresSaved}} {
		a, now := Allowance{}, time.Unix(1_800_000_000, 0)
		taken := func() (n int) {
			for a.Take(now, c.share) {
				n++
			}
			return n
		}
		if n := taken(); n != choresSaved {
			t.Errorf("%d chores at first, want %d", n, choresSaved)
		}
		now = now.Add(time.Duration(c.seconds)*time.Second + time.Millisecond)
		if got := taken(); got != c.want {
			t.Errorf("%d chores after %d s with a share of %v, want %d", got, c.seconds, c.share, c.want)
		}
	}
}
