package core

import (
	"testing"
	"time"
)

// TestSpare: polls that are dear are spaced, one that was dear by chance is not.
func TestSpare(t *testing.T) {
	const commands, share = 3, 0.05
	var p pace
	for i, c := range []struct{ cost, pause time.Duration }{
		{10 * time.Millisecond, 0},
		{10 * time.Millisecond, 200 * time.Millisecond},
		{500 * time.Millisecond, 200 * time.Millisecond}, // once
		{10 * time.Millisecond, 200 * time.Millisecond},
		{100 * time.Millisecond, 200 * time.Millisecond},
		{100 * time.Millisecond, 2 * time.Second}, // twice
		{10 * time.Second, 2 * time.Second},
		{10 * time.Second, maxPause},
	} {
		p.spare(commands, c.cost+commands*bareCommand, share, time.Second)
		if p.pause != c.pause || p.gated != (c.pause > time.Second) {
			t.Errorf("poll %d: a pause of %v (gated: %v), want %v", i, p.pause, p.gated, c.pause)
		}
	}
}
