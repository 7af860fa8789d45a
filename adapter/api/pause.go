package api

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pauses between two attempts of a client.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// pause grows with every retry and has a random part, so that the jobs of a whole cluster do not
// return in step.
type pause struct{ length time.Duration }

func newPause() *pause { return &pause{firstPause} }

// sleep waits for the next retry, but not longer than most.
func (p *pause) sleep(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(min(p.length/2+rand.N(p.length), most))
	defer t.Stop()
	p.length = min(2*p.length, longestPause)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
