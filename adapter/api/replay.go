package api

import (
	"crypto/sha256"
	"sync"
	"time"
)

// replayCache remembers recent credentials. munged refuses replays itself, but not if two munged
// share a key; the cache does. It is bounded by dropping the oldest generation.
type replayCache struct {
	mu       sync.Mutex
	now, old map[[sha256.Size]byte]struct{}
	turned   time.Time
}

// used notes the credential and reports whether it was noted before.
// Each is remembered for keep at least.
func (c *replayCache) used(credential string, now time.Time, keep time.Duration) bool {
	key := sha256.Sum256([]byte(credential))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || now.Sub(c.turned) > keep {
		c.old, c.now, c.turned = c.now, make(map[[sha256.Size]byte]struct{}), now
	}
	_, inNow := c.now[key]
	_, inOld := c.old[key]
	c.now[key] = struct{}{}
	return inNow || inOld
}
