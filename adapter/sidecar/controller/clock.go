package controller

import "time"

// clock is the core's: it begins with the machine's and then goes on evenly, whatever is
// done to that.
type clock struct {
	begun time.Time     // with its monotonic reading
	skew  time.Duration // of the machine's clock from this one, as far as was told
}

// clockSlack is how far both may drift apart: less is being slewed, not set.
const clockSlack = 2 * time.Second

func startClock() *clock { return &clock{begun: time.Now()} }

// now is the time. It is safe for concurrent use.
func (c *clock) now() time.Time { return c.begun.Add(time.Since(c.begun)).Round(0) }

// set is by how much the machine's clock was set since it was last asked; 0: it was not.
func (c *clock) set() time.Duration {
	by := time.Now().Round(0).Sub(c.now()) - c.skew
	if by.Abs() < clockSlack {
		return 0
	}
	by = by.Round(time.Second)
	c.skew += by
	return by
}
